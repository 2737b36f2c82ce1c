"""Which subwords of the two sides stand in the same pairs: what a dictionary can be guessed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.corpus import Corpus

Numbers = npt.NDArray[np.int64]


class Cooccurrence:
    """In how many pairs each subword of the source stands, each of the target, and both together."""

    def __init__(self, vocabulary: int, pairs: list[tuple[list[int], list[int]]]) -> None:
        self._vocabulary = vocabulary
        self._source = np.zeros(vocabulary, dtype=np.int64)
        self._target = np.zeros(vocabulary, dtype=np.int64)
        keys = []
        for source, target in pairs:
            # Each counts once a pair, however often it stands in it.
            ones, others = np.unique(source), np.unique(target)
            self._source[ones] += 1
            self._target[others] += 1
            keys.append((ones[:, None].astype(np.int64) * vocabulary + others).reshape(-1))
        together = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
        self._key, self._count = np.unique(together, return_counts=True)

    @classmethod
    def of(cls, corpus: Corpus, vocabulary: int, *, pairs: int) -> Cooccurrence:
        """Counts so many pairs of a corpus, drawn evenly from all of it."""
        chosen = np.linspace(0, len(corpus) - 1, min(pairs, len(corpus)), dtype=np.int64)
        return cls(vocabulary, [corpus.pair(int(number)) for number in chosen])

    def dice(self, source: npt.NDArray[Any], target: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """How much two subwords belong together, from 0 to 1 (the one never stands without the other)."""
        key = source.astype(np.int64) * self._vocabulary + target
        place = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        together = np.where(self._key[place] == key, self._count[place], 0)
        alone = self._source[source] + self._target[target]
        dice: npt.NDArray[np.float64] = 2 * together / np.maximum(alone, 1)
        return dice
