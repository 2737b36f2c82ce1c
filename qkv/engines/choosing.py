"""Which tokens may follow: the vocabulary, or the part of it that the sentences can need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, OrtValue

from qkv.engines.sessions import working
from qkv.errors import CheckpointError
from qkv.search.engine import Floats, Integers, Known

_SPARE = 4
"""So many more of the best are asked for, in case that some are forbidden."""


@dataclass(frozen=True)
class Vocabulary:
    """What can be chosen; where that is a part of the vocabulary, which one, and of it what each sentence may have."""

    session: InferenceSession
    constants: Mapping[str, OrtValue]
    size: int
    tokens_V: Integers | None = None
    mask_NV: Floats | None = None

    def select(self, sentences_N: Integers) -> Vocabulary:
        return self if self.mask_NV is None else replace(self, mask_NV=self.mask_NV[sentences_N])

    def choose(self, y_NBD: Floats, count: int) -> tuple[OrtValue, Floats, Integers]:
        """All log-probabilities, and of the most likely tokens theirs and their places."""
        given = {"y_NBD": y_NBD, "count_1": np.array([count])}
        if self.mask_NV is not None:
            given["mask_N1V"] = self.mask_NV[:, None]
        inputs = {name: OrtValue.ortvalue_from_numpy(array) for name, array in given.items()}
        with working():
            every, best, place = self.session.run_with_ort_values(None, {**inputs, **self.constants})
        best_NBC, place_NBC = best.numpy(), place.numpy()
        rows = [*y_NBD.shape[:2]]
        if (every.shape(), [*best_NBC.shape], [*place_NBC.shape]) != (
            [*rows, self.choices],
            [*rows, count],
            [*rows, count],
        ) or not 0 <= place_NBC.min() <= place_NBC.max() < self.choices:
            raise CheckpointError("the model is damaged: it chooses what there is not")
        return every, best_NBC, place_NBC

    @property
    def choices(self) -> int:
        """How many there are to choose from."""
        return self.size if self.tokens_V is None else len(self.tokens_V)

    def tokens(self, places: Integers) -> Integers:
        return places if self.tokens_V is None else self.tokens_V[places]

    def places(self, tokens: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Where tokens stand among those that can be chosen, and whether they do."""
        if self.tokens_V is None:
            return tokens, np.ones(tokens.shape, bool)
        place = np.searchsorted(self.tokens_V, tokens).clip(max=len(self.tokens_V) - 1)
        return place, self.tokens_V[place] == tokens


class Chosen:
    """What may follow each hypothesis; computed when it is asked for, and no more of it than is."""

    def __init__(self, vocabulary: Vocabulary, y_NBD: Floats, looked_RK: Floats | None) -> None:
        self.looked_RK = looked_RK
        self._vocabulary = vocabulary
        self._y_NBD = y_NBD
        self._forbidden: list[tuple[Integers, Integers]] = []
        self._every: OrtValue | None = None
        self._known: Known | None = None

    def forbid(self, rows: Integers, tokens: Integers) -> None:
        rows, tokens = (one.ravel() for one in np.broadcast_arrays(rows, tokens))
        place, there = self._vocabulary.places(tokens)
        if there.any():
            self._forbidden.append((rows[there], place[there]))
            if self._known is not None:
                self._known.forbid(*self._forbidden[-1])

    def best(self, count: int) -> tuple[Floats, Integers]:
        count = min(count, self._vocabulary.choices)
        # The graph's own choice is quicker than one of ours among numbers that are there.
        best_RC, place_RC = self._best_allowed(count) or self._whole().best(count)
        return best_RC, self._vocabulary.tokens(place_RC)

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        place, there = self._vocabulary.places(tokens)
        return np.where(there, self._whole().of(rows, place), np.float32(-np.inf))

    def everything(self) -> Floats:
        tokens_V, some_RV = self._vocabulary.tokens_V, self._whole().everything()
        if tokens_V is None:
            return some_RV
        every = np.full((len(some_RV), self._vocabulary.size), -np.inf, np.float32)
        every[:, tokens_V] = some_RV
        return every

    def _best_allowed(self, count: int) -> tuple[Floats, Integers] | None:
        """The best that the graph found, without what is forbidden; None where too few of them are left."""
        asked = min(count + _SPARE * bool(self._forbidden), self._vocabulary.choices)
        self._every, best_NBC, place_NBC = self._vocabulary.choose(self._y_NBD, asked)
        best_RC, place_RC = best_NBC.reshape(-1, asked), place_NBC.reshape(-1, asked)
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
                self._every, _, _ = self._vocabulary.choose(self._y_NBD, 1)
            self._known = Known(self._every.numpy().reshape(-1, self._vocabulary.choices))
            for rows, places in self._forbidden:
                self._known.forbid(rows, places)
        return self._known
