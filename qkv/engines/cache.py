"""What hypotheses wrote, as a tree: keys and values of every token are kept once, in slots that branches share.

A hypothesis sees the slots of its own branch and no others. So those that go on, or several that go on from one, are a
matter of what is seen, and a slot that nobody sees any more is free for the next token. Nothing is moved but when the
slots are full or sentences leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qkv.engines.memory import Pool
from qkv.search.engine import Floats, Integers

_STEPS = 4
"""So many steps at least there is room for when slots are made: more are moved less often, and looked at in vain."""
_LEAST = 16


@dataclass(frozen=True)
class Cache:
    """The slots of every layer, and which of them each hypothesis sees."""

    key_NHSE: tuple[Floats, ...]
    value_NHSU: tuple[Floats, ...]
    mask_NBS: Floats
    """Zero where a hypothesis sees a slot, minus infinity elsewhere."""
    pool: Pool

    @classmethod
    def empty(cls, pool: Pool, layers: int, sentences: int, heads: int, key_width: int, value_width: int) -> Cache:
        keys, values = (
            tuple(np.zeros((sentences, heads, 0, width), np.float32) for _ in range(layers))
            for width in (key_width, value_width)
        )
        return cls(keys, values, np.zeros((sentences, 1, 0), np.float32), pool)

    @property
    def slots(self) -> int:
        return int(self.mask_NBS.shape[2])

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Cache:
        """These hypotheses go on, of these sentences (None: all)."""
        mask = self.mask_NBS.reshape(-1, self.slots)[hypotheses_R]
        if sentences_N is None:
            return replace(self, mask_NBS=mask.reshape(len(self.mask_NBS), -1, self.slots))
        return self._left(mask.reshape(len(sentences_N), -1, self.slots), sentences_N)

    def taking(self) -> tuple[Cache, Integers]:
        """The same where every hypothesis has taken a slot that was free, which it will see; and which slot that is."""
        beam = self.mask_NBS.shape[1]
        seen = _seen(self.mask_NBS)
        if self.slots - seen.sum(axis=1).max() < beam:
            return self._grown().taking()
        slot_NB = np.argsort(seen, axis=1, kind="stable")[:, :beam]
        mask_NBS = self.mask_NBS.copy()
        np.put_along_axis(mask_NBS, slot_NB[..., None], 0, axis=2)
        return replace(self, mask_NBS=mask_NBS), slot_NB

    def _grown(self) -> Cache:
        """The same with more slots."""
        sentences, beam, slots = self.mask_NBS.shape
        more = _room(beam)

        def grown(part: Floats) -> Floats:
            _, heads, _, width = part.shape
            larger = self.pool.array((sentences, heads, slots + more, width))
            larger[:, :, :slots] = part
            # Any numbers will do that are numbers.
            larger[:, :, slots:] = 0
            return larger

        nobody_sees = np.full((sentences, beam, more), -np.inf, np.float32)
        return self._with(grown, np.concatenate([self.mask_NBS, nobody_sees], axis=2))

    def _left(self, mask: Floats, sentences: Integers) -> Cache:
        """Of these sentences, what somebody sees by this mask; and room after it."""
        seen = _seen(mask)
        beam = mask.shape[1]
        slots = int(seen.sum(axis=1).max(initial=0)) + _room(beam)
        # Where there is nothing to bring, the first slot.
        places = np.zeros((len(sentences), slots), np.int64)
        moved = np.full((len(sentences), beam, slots), -np.inf, np.float32)
        for n, somebody_sees in enumerate(seen):
            brought = np.flatnonzero(somebody_sees)
            places[n, : len(brought)] = brought
            moved[n, :, : len(brought)] = mask[n][:, brought]

        def gathered(part: Floats) -> Floats:
            _, heads, before, width = part.shape
            row = (sentences[:, None] * heads + np.arange(heads))[..., None] * before + places[:, None]
            fewer = self.pool.array((*row.shape, width))
            # No place lies outside; saying so saves a copy.
            return np.take(part.reshape(-1, width), row, axis=0, out=fewer, mode="clip")

        return self._with(gathered, moved)

    def _with(self, move: Callable[[Floats], Floats], mask: Floats) -> Cache:
        """The same with every part moved."""
        return Cache(tuple(map(move, self.key_NHSE)), tuple(map(move, self.value_NHSU)), mask, self.pool)


def _seen(mask: Floats) -> NDArray[np.bool_]:
    """For each sentence, the slots that some hypothesis sees."""
    seen: NDArray[np.bool_] = (mask == 0).any(axis=1)
    return seen


def _room(beam: int) -> int:
    return max(_LEAST, _STEPS * beam)
