"""How fast a run trains, found out before it begins: on steps that are thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from qkv.config import Config
from qkv.devices import release_memory
from qkv.prepare import Prepared
from qkv.training.feeding import batches_of, prefetched
from qkv.training.learner import Learner
from qkv.training.processes import Processes

_SETTING_UP = {"cpu": 1, "cuda": 5}
"""Steps that are not like those after them: kernels are chosen, graphs captured."""
_LEAST_TIMED = 3


def steps_a_second(config: Config, prepared: Prepared, trying: float) -> float:
    """The speed of training here, measured for about so many seconds."""
    alone = Processes()
    # Before dropout begins, steps may be twice as quick.
    config = config.with_changes(training={"dropout_after": 0})
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


def _nothing() -> None:
    pass
