"""What can be chosen from: the vocabulary, or the part of it that a sentence can need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, OrtValue

from qkv.engines.sessions import value, working
from qkv.search.engine import Floats, Integers

Choice = tuple[Floats, Integers, Callable[[], Floats]]
"""Of the most likely choices their log-probabilities and places, and how to get the log-probabilities of all, RV."""


class Vocabulary(Protocol):
    """Tokens of each sentence that have places, from 0 on."""

    @property
    def choices(self) -> int:
        """How many places there are."""
        ...

    def select(self, sentences_N: Integers) -> Vocabulary: ...

    def choose(self, y_NBD: Floats, count: int) -> Choice:
        """So many of the best choices of each hypothesis."""
        ...

    def tokens(self, sentences: Integers, places: Integers) -> Integers:
        """What stands at the places of these sentences."""
        ...

    def places(self, sentences: Integers, tokens: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Where tokens stand among those of these sentences, and whether they do."""
        ...

    def spread(self, some_RV: Floats) -> Floats:
        """From all places to all tokens; what has no place is minus infinity."""
        ...


@dataclass(frozen=True)
class Whole:
    """All tokens: each stands at its own number."""

    session: InferenceSession
    choices: int

    def select(self, sentences_N: Integers) -> Whole:  # noqa: ARG002
        return self

    def choose(self, y_NBD: Floats, count: int) -> Choice:
        every, best, place = _run(self.session, {"y_NBD": y_NBD, "count_1": np.array([count])})
        return best.numpy(), place.numpy(), lambda: every.numpy().reshape(-1, self.choices)

    def tokens(self, sentences: Integers, places: Integers) -> Integers:  # noqa: ARG002
        return places

    def places(self, sentences: Integers, tokens: Integers) -> tuple[Integers, NDArray[np.bool_]]:  # noqa: ARG002
        return tokens, np.ones(tokens.shape, bool)

    def spread(self, some_RV: Floats) -> Floats:
        return some_RV


@dataclass(frozen=True)
class Always:
    """What any translation may have, which a graph has as constants."""

    session: InferenceSession
    tokens_J: Integers
    vocabulary: int

    @cached_property
    def place_V(self) -> Integers:
        """Where each token stands; -1 for those that do not."""
        place_V = np.full(self.vocabulary, -1)
        place_V[self.tokens_J] = np.arange(len(self.tokens_J))
        return place_V


@dataclass(frozen=True)
class Expected:
    """What always may come, and behind it what each sentence may have besides."""

    always: Always
    own_NO: Integers
    """In rising order; where there is no more, the size of the vocabulary."""
    numbers_NDO: NDArray[Any]
    scale_N1O: Floats

    @property
    def choices(self) -> int:
        return len(self.always.tokens_J) + int(self.own_NO.shape[1])

    def select(self, sentences_N: Integers) -> Expected:
        return replace(
            self,
            own_NO=self.own_NO[sentences_N],
            numbers_NDO=self.numbers_NDO[sentences_N],
            scale_N1O=self.scale_N1O[sentences_N],
        )

    @cached_property
    def _mask_N1O(self) -> Floats:
        return np.where(self.own_NO < self.always.vocabulary, np.float32(0), np.float32(-np.inf))[:, None]

    @cached_property
    def _keys(self) -> Integers:
        """A number for each token of each sentence's own, all in rising order."""
        sentence_N1 = np.arange(len(self.own_NO))[:, None]
        keys: Integers = (sentence_N1 * (self.always.vocabulary + 1) + self.own_NO).ravel()
        return keys

    def choose(self, y_NBD: Floats, count: int) -> Choice:
        given = {
            "y_NBD": y_NBD,
            "count_1": np.array([count]),
            "numbers_NDO": self.numbers_NDO,
            "scale_N1O": self.scale_N1O,
            "mask_N1O": self._mask_N1O,
        }
        always, share, own, best, place = _run(self.always.session, given)

        def every() -> Floats:
            joined = np.concatenate([always.numpy() + share.numpy(), own.numpy()], axis=-1)
            return joined.reshape(-1, self.choices)

        return best.numpy(), place.numpy(), every

    def tokens(self, sentences: Integers, places: Integers) -> Integers:
        many = len(self.always.tokens_J)
        always = self.always.tokens_J[np.minimum(places, many - 1)]
        # Where a sentence has no more tokens nothing is likely, but whoever asks for many gets it.
        own = np.minimum(self.own_NO[sentences, np.maximum(places - many, 0)], self.always.vocabulary - 1)
        return np.where(places < many, always, own)

    def places(self, sentences: Integers, tokens: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        key = sentences * (self.always.vocabulary + 1) + tokens
        found = np.searchsorted(self._keys, key).clip(max=len(self._keys) - 1)
        always = self.always.place_V[tokens]
        own = len(self.always.tokens_J) + found % self.own_NO.shape[1]
        return np.where(always >= 0, always, own), (always >= 0) | (self._keys[found] == key)

    def spread(self, some_RV: Floats) -> Floats:
        N, many = len(self.own_NO), len(self.always.tokens_J)
        some_NBV = some_RV.reshape(N, -1, self.choices)
        # A token more than there are, for places where no token stands.
        every_NBV = np.full((*some_NBV.shape[:2], self.always.vocabulary + 1), -np.inf, np.float32)
        every_NBV[..., self.always.tokens_J] = some_NBV[..., :many]
        np.put_along_axis(every_NBV, self.own_NO[:, None], some_NBV[..., many:], axis=2)
        return every_NBV[..., :-1].reshape(len(some_RV), -1)


def _run(session: InferenceSession, given: Mapping[str, NDArray[Any]]) -> list[OrtValue]:
    with working():
        told: list[OrtValue] = session.run_with_ort_values(None, {name: value(one) for name, one in given.items()})
        return told
