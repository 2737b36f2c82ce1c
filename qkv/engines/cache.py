"""What hypotheses wrote, as a tree: keys and values of every token are kept once, in slots that branches share.

A hypothesis sees the slots of its own branch and no others. So those that go on, or several that go on from one, are a
matter of what is seen: nothing is moved but when the slots are full or sentences leave, and then only what somebody
still sees goes along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from qkv.search.engine import Floats, Integers

_STEPS = 4
"""So many steps there is room for when slots are made: more are moved less often, and looked at in vain for longer."""
_LEAST = 16


@dataclass(frozen=True)
class Cache:
    """The slots of all layers and sentences, which of them each hypothesis sees, and how many are taken."""

    key_LNHSE: Floats
    value_LNHSU: Floats
    mask_NBS: Floats
    """Zero where a hypothesis sees a slot, minus infinity elsewhere."""
    taken: int = 0

    @classmethod
    def empty(cls, layers: int, sentences: int, heads: int, key_width: int, value_width: int) -> Cache:
        return cls(
            np.zeros((layers, sentences, heads, 0, key_width), np.float32),
            np.zeros((layers, sentences, heads, 0, value_width), np.float32),
            np.zeros((sentences, 1, 0), np.float32),
        )

    @property
    def slots(self) -> int:
        return int(self.key_LNHSE.shape[3])

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Cache:
        """These hypotheses go on, of these sentences (None: all)."""
        mask = self.mask_NBS.reshape(-1, self.slots)[hypotheses_R]
        if sentences_N is None:
            return replace(self, mask_NBS=mask.reshape(len(self.mask_NBS), -1, self.slots))
        return self._moved(mask.reshape(len(sentences_N), -1, self.slots), sentences_N)

    def with_room(self) -> Cache:
        """The same with a slot free for every hypothesis."""
        if self.taken + self.mask_NBS.shape[1] <= self.slots:
            return self
        return self._moved(self.mask_NBS, np.arange(len(self.mask_NBS)))

    def taking(self) -> Cache:
        """Every hypothesis has taken the next slot that is free for it; it will see it."""
        beam = np.arange(self.mask_NBS.shape[1])
        mask_NBS = self.mask_NBS.copy()
        mask_NBS[:, beam, self.taken + beam] = 0
        return replace(self, mask_NBS=mask_NBS, taken=self.taken + len(beam))

    def _moved(self, mask: Floats, sentences: Integers) -> Cache:
        """Of these sentences, what somebody sees by this mask; and room after it."""
        seen = (mask == 0).any(axis=1)
        taken = int(seen.sum(axis=1).max(initial=0))
        beam = mask.shape[1]
        slots = taken + max(_LEAST, _STEPS * beam)
        # Where there is nothing to bring, the first slot: any numbers will do that are numbers.
        places = np.zeros((len(sentences), slots), np.int64)
        moved = np.full((len(sentences), beam, slots), -np.inf, np.float32)
        for n, somebody_sees in enumerate(seen):
            brought = np.flatnonzero(somebody_sees)
            places[n, : len(brought)] = brought
            moved[n, :, : len(brought)] = mask[n][:, brought]
        return Cache(
            _gathered(self.key_LNHSE, sentences, places), _gathered(self.value_LNHSU, sentences, places), moved, taken
        )


def _gathered(part_LNHSE: Floats, chosen: Integers, places: Integers) -> Floats:
    """Of these sentences, the slots in these places, row by row."""
    layers, sentences, heads, slots, width = part_LNHSE.shape
    if slots == 0:
        return np.zeros((layers, len(chosen), heads, places.shape[1], width), np.float32)
    row = np.arange(layers)[:, None] * sentences + chosen
    row = (row[:, :, None] * heads + np.arange(heads))[..., None] * slots + places[:, None]
    gathered: Floats = part_LNHSE.reshape(-1, width).take(row, axis=0)
    return gathered
