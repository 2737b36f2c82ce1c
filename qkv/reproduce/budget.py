"""A schedule that fits a time or a number of steps: the speed is measured first, on steps that are thrown away."""

from __future__ import annotations

import math

from qkv.config import Config
from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.training.fitting import fitted
from qkv.training.lengths import often_enough
from qkv.training.processes import Processes
from qkv.training.speed import steps_a_second

_TRYING = 3.0
"""Seconds that are enough to know a speed; of a small budget a tenth is."""
_WARMING_UP = 4
"""The share of a short run that warms up, as its inverse: less, and post-norm layers do not begin to learn."""


def steps_in_time(config: Config, prepared: Prepared, seconds: float) -> int:
    """How many steps of this run fit the time."""
    fitting = fitted(config, Processes(), prepared)
    steps = int(seconds * steps_a_second(fitting, prepared, min(_TRYING, seconds / 10)))
    if steps < 1:
        raise ConfigError(
            f"a step takes longer than the {seconds:g} s of the budget on this machine; give it more, or less to do: "
            "--set training.tokens_per_batch, or a smaller model"
        )
    return steps


def shortened(config: Config, steps: int) -> Config:
    """The settings for a run of so many steps: a warm-up that fits it, to the same peak; reports and saves likewise."""
    options = config.training
    warmup = max(1, min(options.warmup_steps, steps // _WARMING_UP))
    # Equation 3 peaks higher the sooner it does.
    factor = math.sqrt(warmup / options.warmup_steps) if options.schedule == "paper" else 1.0
    return config.with_changes(
        training={
            "steps": steps,
            "warmup_steps": warmup,
            "learning_rate": options.learning_rate * factor,
            **often_enough(options, steps),
        }
    )
