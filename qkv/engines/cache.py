"""What hypotheses wrote, as a tree: keys and values of every token are kept once, in slots that branches share.

A hypothesis sees the slots of its own branch and no others. So those that go on, or several that go on from one, are a
matter of what is seen: nothing is moved but when the slots are full or sentences leave, and then only what somebody
still sees goes along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from qkv.search.engine import Floats, Integers

_STEPS = 4
"""So many steps there is room for when slots are made: more are moved less often, and looked at in vain for longer."""
_LEAST = 16


@dataclass(frozen=True)
class Cache:
    """The slots of every layer, which of them each hypothesis sees, and how many are taken."""

    key_NHSE: tuple[Floats, ...]
    value_NHSU: tuple[Floats, ...]
    mask_NBS: Floats
    """Zero where a hypothesis sees a slot, minus infinity elsewhere."""
    taken: int = 0
    spare: tuple[Floats, ...] = ()
    """Memory that was left at the last move, for the next one: new memory takes longer to get than to fill."""

    @classmethod
    def empty(cls, layers: int, sentences: int, heads: int, key_width: int, value_width: int) -> Cache:
        keys, values = (
            tuple(np.zeros((sentences, heads, 0, width), np.float32) for _ in range(layers))
            for width in (key_width, value_width)
        )
        return cls(keys, values, np.zeros((sentences, 1, 0), np.float32))

    @property
    def slots(self) -> int:
        return int(self.mask_NBS.shape[2])

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
        parts = (*self.key_NHSE, *self.value_NHSU)
        spare = self.spare or tuple(np.empty(0, np.float32) for _ in parts)
        gathered = [_gathered(part, sentences, places, memory) for part, memory in zip(parts, spare, strict=True)]
        layers = len(self.key_NHSE)
        return Cache(tuple(gathered[:layers]), tuple(gathered[layers:]), moved, taken, tuple(map(_memory_of, parts)))


def _gathered(part_NHSE: Floats, chosen: Integers, places: Integers, memory: Floats) -> Floats:
    """Of these sentences, the slots in these places, row by row; into this memory if there is enough of it."""
    _, heads, slots, width = part_NHSE.shape
    shape = (len(chosen), heads, places.shape[1], width)
    size = math.prod(shape)
    if memory.size < size:
        memory = np.empty(2 * size, np.float32)
    gathered = memory[:size].reshape(shape)
    if slots == 0:
        gathered[:] = 0
    else:
        row = (chosen[:, None] * heads + np.arange(heads))[..., None] * slots + places[:, None]
        # No place lies outside; saying so saves a copy.
        np.take(part_NHSE.reshape(-1, width), row, axis=0, out=gathered, mode="clip")
    return gathered


def _memory_of(part: Floats) -> Floats:
    """All that was got for a part, of which it may be the beginning."""
    return part if part.base is None else part.base
