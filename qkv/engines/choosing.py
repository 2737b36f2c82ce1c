"""Which tokens may follow each hypothesis, as a graph tells it: computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from qkv.engines.side_by_side import Joined
from qkv.engines.vocabulary import Vocabulary
from qkv.errors import CheckpointError
from qkv.search.engine import Continuations, Floats, Integers, Known

_SPARE = 4
"""So many more of the best are asked for, in case that some are forbidden."""


@dataclass(frozen=True)
class Words:
    """What sentences have to choose from: each stretch of them that share a vocabulary, and how many these are."""

    vocabularies: Sequence[Vocabulary]
    sizes: Sequence[int]

    def select(self, sentences_N: Integers) -> Words:
        vocabularies, sizes = [], []
        for vocabulary, (first, last) in zip(self.vocabularies, self._bounds(), strict=True):
            low, high = np.searchsorted(sentences_N, [first, last]).tolist()
            if low < high:
                # Who has lost nobody goes on as it stands.
                whole = high - low == last - first
                vocabularies.append(vocabulary if whole else vocabulary.select(sentences_N[low:high] - first))
                sizes.append(high - low)
        return Words(vocabularies, sizes)

    def chosen(self, y_NBD: Floats, looked_RK: Floats | None) -> Continuations:
        """What may follow the hypotheses of all sentences."""
        if len(self.vocabularies) == 1:
            return Chosen(self.vocabularies[0], y_NBD, looked_RK)
        beam = y_NBD.shape[1]
        parts = [
            Chosen(
                vocabulary,
                y_NBD[first:last],
                None if looked_RK is None else looked_RK[beam * first : beam * last],
            )
            for vocabulary, (first, last) in zip(self.vocabularies, self._bounds(), strict=True)
        ]
        bounds = [beam * first for first in accumulate(self.sizes, initial=0)]
        return Joined(parts, bounds, lambda tasks: [task() for task in tasks])

    def _bounds(self) -> list[tuple[int, int]]:
        return [*pairwise(accumulate(self.sizes, initial=0))]


class Chosen:
    """What may follow each hypothesis; computed when it is asked for, and no more of it than is."""

    def __init__(self, vocabulary: Vocabulary, y_NBD: Floats, looked_RK: Floats | None) -> None:
        self.looked_RK = looked_RK
        self._vocabulary = vocabulary
        self._y_NBD = y_NBD
        self._forbidden: list[tuple[Integers, Integers]] = []
        self._every: Callable[[], Floats] | None = None
        self._known: Known | None = None

    def forbid(self, rows: Integers, tokens: Integers) -> None:
        rows, tokens = (one.ravel() for one in np.broadcast_arrays(rows, tokens))
        place, there = self._vocabulary.places(self._sentences(rows), tokens)
        if there.any():
            self._forbidden.append((rows[there], place[there]))
            if self._known is not None:
                self._known.forbid(*self._forbidden[-1])

    def best(self, count: int) -> tuple[Floats, Integers]:
        count = min(count, self._vocabulary.choices)
        # The graph's own choice is quicker than one of ours among numbers that are there.
        best_RC, place_RC = self._best_allowed(count) or self._whole().best(count)
        return best_RC, self._vocabulary.tokens(self._sentences(np.arange(len(best_RC)))[:, None], place_RC)

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        place, there = self._vocabulary.places(self._sentences(rows), tokens)
        return np.where(there, self._whole().of(rows, place), np.float32(-np.inf))

    def everything(self) -> Floats:
        return self._vocabulary.spread(self._whole().everything())

    def _best_allowed(self, count: int) -> tuple[Floats, Integers] | None:
        """The best that the graph found, without what is forbidden; None where too few of them are left."""
        asked = min(count + _SPARE * bool(self._forbidden), self._vocabulary.choices)
        best_RC, place_RC = self._choose(asked)
        if not self._forbidden:
            return best_RC, place_RC
        rows, places = (np.concatenate(parts) for parts in zip(*self._forbidden, strict=True))
        out_RC = np.isin(
            np.arange(len(best_RC))[:, None] * self._vocabulary.choices + place_RC,
            rows * self._vocabulary.choices + places,
        )
        if (out_RC.sum(axis=1) > asked - count).any():
            return None
        kept_RC = np.argsort(out_RC, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(best_RC, kept_RC, axis=1), np.take_along_axis(place_RC, kept_RC, axis=1)

    def _whole(self) -> Known:
        """All of them, with what is forbidden taken out."""
        if self._known is None:
            if self._every is None:
                self._choose(1)
            assert self._every is not None
            self._known = Known(self._every())
            for rows, places in self._forbidden:
                self._known.forbid(rows, places)
        return self._known

    def _choose(self, count: int) -> tuple[Floats, Integers]:
        N, B, _ = self._y_NBD.shape
        best_NBC, place_NBC, self._every = self._vocabulary.choose(self._y_NBD, count)
        if (best_NBC.shape, place_NBC.shape) != ((N, B, count),) * 2 or not (
            0 <= place_NBC.min() <= place_NBC.max() < self._vocabulary.choices
        ):
            raise CheckpointError("the model is damaged: it chooses what there is not")
        return best_NBC.reshape(-1, count), place_NBC.reshape(-1, count)

    def _sentences(self, rows: Integers) -> Integers:
        """Whose hypotheses these are."""
        sentences: Integers = rows // self._y_NBD.shape[1]
        return sentences
