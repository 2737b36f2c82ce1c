"""What a run remembers beside its tensors: how far it is, how good it was, and what went wrong on the way."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qkv.config import TrainingConfig
from qkv.training.divergence import Setback, Watch
from qkv.training.reports import Window


@dataclass
class History:
    """All of it is part of a checkpoint, so that a resumed run does as one that was never stopped."""

    step: int = 0
    seconds: float = 0.0
    skipped: int = 0
    bad_steps: list[int] = field(default_factory=list)
    """The steps left out since the last good one."""
    best_loss: float | None = None
    best_step: int | None = None
    """When the validation loss was the best one."""
    validations_since_best: int = 0
    passing: list[int] = field(default_factory=list)
    """Steps that were saved only because training stopped there, or was best there: they change nothing of what the run
    ends with."""
    unvalidated: bool = False
    """Whether the validation that is due after this step is still to be done."""
    validation_seconds: float = 0.0
    """What a validation took, at most; 0 before the first."""
    rollbacks: int = 0
    """How often the run has gone back."""
    rate_factor: float = 1.0
    """What is left of the learning rate since."""
    window: Window = field(default_factory=Window)
    watch: Watch = field(default_factory=Watch)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> History:
        """What the state of a checkpoint tells; what it does not is as at the beginning."""
        told = {one.name: state[one.name] for one in dataclasses.fields(cls) if one.name in state}
        return cls(**{**told, "window": Window(state.get("window")), "watch": Watch(state.get("watch"))})

    def state(self) -> dict[str, Any]:
        """The same for a checkpoint."""
        kept = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {**kept, "window": self.window.state(), "watch": self.watch.state()}

    def done(self, options: TrainingConfig) -> bool:
        return not self.unvalidated and (self.step >= options.steps or self.stopped_early(options))

    def stopped_early(self, options: TrainingConfig) -> bool:
        return options.patience is not None and self.validations_since_best >= options.patience

    def ends_at(self, options: TrainingConfig) -> int:
        """The step whose weights the run would end with now: with patience, that of the best validation."""
        return self.step if options.patience is None or self.best_step is None else self.best_step

    def validated(self, loss: float) -> None:
        self.unvalidated = False
        if loss < (math.inf if self.best_loss is None else self.best_loss):
            self.best_loss, self.best_step, self.validations_since_best = loss, self.step, 0
        else:
            self.validations_since_best += 1

    def go_on_after(self, setback: Setback) -> None:
        self.rollbacks, self.rate_factor = setback.number, setback.rate_factor
