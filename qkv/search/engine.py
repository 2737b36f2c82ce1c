"""What a search asks of whoever runs the model; arrays of numpy go in and come out, whatever computes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class SearchState(Protocol):
    """What is known of the sentences in search and of what was written so far."""

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Self:
        """Goes on with these hypotheses, of these sentences (None: all of them).

        Every sentence has equally many, one sentence's after the other's; a hypothesis may go on several times.
        """
        ...


class Continuations(Protocol):
    """What may follow each hypothesis: the log-probability of every token of the vocabulary."""

    @property
    def looked_RK(self) -> Floats | None:
        """How much each hypothesis looked at each position of its source just now; None where nobody asked for it."""
        ...

    def forbid(self, rows: Integers, tokens: Integers) -> None:
        """Takes these out, for good: rows and tokens as they broadcast. What is left keeps its probability."""
        ...

    def best(self, count: int) -> tuple[Floats, Integers]:
        """The log-probabilities and tokens of the most likely ones of each hypothesis, best first."""
        ...

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        """The log-probabilities of certain tokens, pair by pair; of what is forbidden, minus infinity."""
        ...

    def everything(self) -> Floats:
        """All of them, RV, to be written over at will; what is forbidden, or not looked at, is minus infinity."""
        ...


S = TypeVar("S", bound=SearchState)


class Engine(Protocol[S]):
    """Reads sources, then writes token by token."""

    @property
    def looks_when_read(self) -> bool:
        """Whether it looks at what a token came from in the step that reads it, and not in the one that writes it."""
        ...

    def start(
        self, sources: Sequence[Sequence[int]], *, wanted: Sequence[Collection[int]] = (), looks: bool = False
    ) -> S:
        """Reads these sources, each with its end.

        `wanted` are, for each or for none, tokens that it must have to choose from, whatever else an engine leaves out
        to be quick; `looks` asks for the attention of every step.
        """
        ...

    def step(self, token_R: Integers, state: S) -> tuple[Continuations, S]:
        """What may follow when each hypothesis is continued by its token, and the state after it."""
        ...


class Known:
    """Continuations that lie there as an array, which becomes theirs."""

    def __init__(self, log_probability_RV: Floats, looked_RK: Floats | None = None) -> None:
        self._log_probability_RV = log_probability_RV
        self.looked_RK = looked_RK

    def forbid(self, rows: Integers, tokens: Integers) -> None:
        self._log_probability_RV[rows, tokens] = -np.inf

    def best(self, count: int) -> tuple[Floats, Integers]:
        values_RV = self._log_probability_RV
        count = min(count, values_RV.shape[1])
        token_RC = np.argpartition(values_RV, -count, axis=1)[:, -count:]
        value_RC = np.take_along_axis(values_RV, token_RC, axis=1)
        order_RC = np.argsort(-value_RC, axis=1, kind="stable")
        return np.take_along_axis(value_RC, order_RC, axis=1), np.take_along_axis(token_RC, order_RC, axis=1)

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        return self._log_probability_RV[rows, tokens]

    def everything(self) -> Floats:
        return self._log_probability_RV
