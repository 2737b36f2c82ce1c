"""Several models as one: what follows is as likely as they hold it to be on average."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from qkv.search.engine import Continuations, Engine, Floats, Integers, Known


class Readings(NamedTuple):
    """What each of the models knows."""

    states: tuple[Any, ...]

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Readings:
        return Readings(tuple(state.select(hypotheses_R, sentences_N) for state in self.states))


class Ensemble:
    """An engine that joins others; all have the same vocabulary."""

    def __init__(self, engines: Sequence[Engine[Any]]) -> None:
        self._engines = [*engines]
        self.looks_when_read = engines[0].looks_when_read

    def start(
        self, sources: Sequence[Sequence[int]], *, wanted: Sequence[Collection[int]] = (), looks: bool = False
    ) -> Readings:
        return Readings(tuple(engine.start(sources, wanted=wanted, looks=looks) for engine in self._engines))

    def step(self, token_R: Integers, readings: Readings) -> tuple[Known, Readings]:
        steps = [engine.step(token_R, state) for engine, state in zip(self._engines, readings.states, strict=True)]
        told = [continuations for continuations, _ in steps]
        # Those that look at another time would blur the look of the others.
        alike = [engine.looks_when_read == self.looks_when_read for engine in self._engines]
        looks = [one.looked_RK for one in compress(told, alike) if one.looked_RK is not None]
        looked_RK: Floats | None = np.stack(looks).mean(0) if looks else None
        return Known(_log_of_mean(told), looked_RK), Readings(tuple(state for _, state in steps))


def _log_of_mean(told: Sequence[Continuations]) -> Floats:
    log_probabilities = np.stack([one.everything() for one in told])
    most_RV = log_probabilities.max(0)
    # What nobody thinks possible would be infinity less infinity.
    most_RV[np.isneginf(most_RV)] = 0
    with np.errstate(divide="ignore"):
        mean: Floats = most_RV + np.log(np.exp(log_probabilities - most_RV).mean(0))
    return mean
