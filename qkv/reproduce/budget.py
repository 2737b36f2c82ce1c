"""A schedule that fits a time or a number of steps: the speed is measured first, on steps that are thrown away."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing

from qkv.config import Config
from qkv.devices import release_memory
from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.training.feeding import batches_of, prefetched
from qkv.training.fitting import fitted
from qkv.training.learner import Learner
from qkv.training.processes import Processes

_SETTING_UP = {"cpu": 1, "cuda": 5}
"""Steps that are not like those after them: kernels are chosen, graphs captured."""
_LEAST_TIMED = 3
_TRYING = 3.0
"""Seconds that are enough to know a speed; of a small budget a tenth is."""
_WARMING_UP = 4
"""The share of a short run that warms up, as its inverse: less, and post-norm layers do not begin to learn."""
_SAVES = 40
"""Checkpoints of a short run, so that the mean of the last five is one over the last tenth of it."""
_TOLD = 10


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


def steps_a_second(config: Config, prepared: Prepared, trying: float) -> float:
    """The speed of training here, measured for about so many seconds."""
    alone = Processes()
    learner = Learner.begin(config, prepared.tokenizer().size, alone)
    learner.model.train()
    untimed = _SETTING_UP[learner.device.type]
    batches = batches_of(config, prepared, "train")
    begun, timed = 0.0, 0
    # As training does: what came of a step is looked at while the next one is computed.
    look: Callable[[], object] = _nothing
    with closing(prefetched(batches, range(1 << 30), alone, learner.device)) as coming:
        for number, batch in enumerate(coming, start=1):
            outcome = learner.take_step.begin(batch, number)
            look()
            look = outcome
            if number == untimed:
                look()
                look, begun = _nothing, time.perf_counter()
            timed = number - untimed
            if timed >= _LEAST_TIMED and time.perf_counter() - begun >= trying:
                break
        look()
    speed = timed / (time.perf_counter() - begun)
    device = learner.device
    del learner, look, outcome
    release_memory(device)
    return speed


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
            "save_every": max(1, min(options.save_every, steps // _SAVES)),
            "validate_every": max(1, min(options.validate_every, steps // _TOLD)),
            "report_every": max(1, min(options.report_every, steps // _TOLD)),
        }
    )


def _nothing() -> None:
    pass
