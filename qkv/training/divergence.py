"""Learning that goes wrong: how it is noticed, and from where training goes on more slowly."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qkv.checkpoint import step_of

STEPS = 51
"""Steps whose median loss is looked at: a spike that passes within 25 of them is none."""
SLOWER = 0.5
"""What a rollback makes of the learning rate."""


class Setback(NamedTuple):
    """Why training has to go back, and how it goes on."""

    reason: str
    from_step: int
    good_until: int
    """The last step after which nothing was wrong yet."""
    useless: int | None
    """The step whose checkpoint led to nothing but trouble."""
    number: int
    """The first rollback of a run is 1."""
    rate_factor: float
    """What the learning rate is multiplied with from now on."""

    def report(self) -> dict[str, Any]:
        """What the log says of it."""
        return {
            "rollback": self.number,
            "from_step": self.from_step,
            "rate_factor": self.rate_factor,
            "reason": self.reason,
        }


class Diverged(Exception):  # noqa: N818 - not an error yet: training goes back and on
    """Ends an attempt at training, to go on with another."""

    def __init__(self, setback: Setback) -> None:
        super().__init__(setback.reason)
        self.setback = setback


class Watch:
    """Looks at the loss of each step; part of a checkpoint, so that a resumed run notices the same."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self._losses: deque[float] = deque(state.get("losses", ()), maxlen=STEPS)
        self._best: float | None = state.get("best")
        self._good_until: int = state.get("good_until", 0)

    def add(self, step: int, loss: float, allowed: float) -> str | None:
        """Tells what is wrong if the median of the last losses is more than `allowed` above the best there was."""
        self._losses.append(loss)
        if len(self._losses) < STEPS:
            return None
        median = statistics.median(self._losses)
        self._best = median if self._best is None else min(self._best, median)
        if median <= self._best + allowed / 2:
            # Half of the last steps were good: all of those before them, and perhaps not the newest.
            self._good_until = step - STEPS
        if median <= self._best + allowed:
            return None
        return f"the loss rose to {median:.2f} after it had been down to {self._best:.2f}"

    @property
    def good_until(self) -> int:
        return self._good_until

    def state(self) -> dict[str, Any]:
        return {"losses": [*self._losses], "best": self._best, "good_until": self._good_until}


def place_to_go_on(checkpoints: Sequence[Path], good_until: int, useless: int | None = None) -> Path | None:
    """The newest checkpoint of before the trouble, or the oldest there is; None where there is none of use."""
    of_use = [one for one in checkpoints if step_of(one) != useless]
    good = [one for one in of_use if step_of(one) <= good_until]
    return good[-1] if good else next(iter(of_use), None)
