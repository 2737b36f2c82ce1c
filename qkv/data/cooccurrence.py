"""Which subwords of the two sides stand in the same pairs: what a dictionary can be guessed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.corpus import Corpus

Numbers = npt.NDArray[np.int64]

_AT_ONCE = 10_000
"""Pairs that are counted together."""


class Cooccurrence:
    """In how many pairs each subword of the source stands, each of the target, and both together."""

    def __init__(self, vocabulary: int, pairs: list[tuple[list[int], list[int]]]) -> None:
        self._vocabulary = vocabulary
        self._source = np.zeros(vocabulary, dtype=np.int64)
        self._target = np.zeros(vocabulary, dtype=np.int64)
        self._key, self._count = np.zeros(0, np.int64), np.zeros(0, np.int64)
        waiting: list[Numbers] = []
        for source, target in pairs:
            # Each counts once a pair, however often it stands in it.
            ones, others = np.unique(source), np.unique(target)
            self._source[ones] += 1
            self._target[others] += 1
            waiting.append((ones[:, None].astype(np.int64) * vocabulary + others).reshape(-1))
            if len(waiting) == _AT_ONCE:
                self._add(waiting)
                waiting = []
        self._add(waiting)

    @classmethod
    def of(cls, corpus: Corpus, vocabulary: int, *, pairs: int, among: Numbers | None = None) -> Cooccurrence:
        """Counts so many pairs of a corpus, drawn evenly from all of it, or from those `among` it that are named."""
        count = len(corpus) if among is None else len(among)
        chosen = np.linspace(0, count - 1, min(pairs, count), dtype=np.int64)
        numbers = chosen if among is None else among[chosen]
        return cls(vocabulary, [corpus.pair(int(number)) for number in numbers])

    def dice(self, source: npt.NDArray[Any], target: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """How much two subwords belong together, from 0 to 1 (the one never stands without the other)."""
        key = source.astype(np.int64) * self._vocabulary + target
        place = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        together = np.where(self._key[place] == key, self._count[place], 0)
        alone = self._source[source] + self._target[target]
        dice: npt.NDArray[np.float64] = 2 * together / np.maximum(alone, 1)
        return dice

    def likely(self, count: int, *, missing: int, without: Numbers) -> Numbers:
        """For every subword of the source a row of those that belong to it most, best first, `without` some of them;
        then those missing."""
        key = self._key[~np.isin(self._key % self._vocabulary, without)]
        source, target = key // self._vocabulary, key % self._vocabulary
        order = np.lexsort((-self.dice(source, target), source))
        source, target = source[order], target[order]
        rank = np.arange(len(source)) - np.searchsorted(source, source)
        kept = rank < count
        rows = np.full((self._vocabulary, count), missing, dtype=np.int64)
        rows[source[kept], rank[kept]] = target[kept]
        return rows

    def frequent(self, count: int) -> Numbers:
        """The subwords that stand in most targets, the most frequent first."""
        most = np.argsort(-self._target, kind="stable")[:count]
        return most[self._target[most] > 0]

    def _add(self, keys: list[Numbers]) -> None:
        """Counted in between and not at the end: all keys of a large corpus would not fit into memory."""
        key, count = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_counts=True)
        self._key, place = np.unique(np.concatenate([self._key, key]), return_inverse=True)
        self._count = np.bincount(place, weights=np.concatenate([self._count, count])).astype(np.int64)
