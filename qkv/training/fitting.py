"""How large a batch fits the memory, found out before training begins: `training.tokens_per_batch=auto`.

Every step has the same shape, so what fits once fits to the end. A GPU is tried out: a few real steps, a validation and
its translations, for batches that grow until there is no more room. For a CPU, whose system would rather end a process
than say that memory is short, it is estimated; so it is where each process keeps a part of the weights, for then none
can try alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from qkv.config import Config
from qkv.data.batches import Batches
from qkv.devices import choose_device, free_memory, memory_limited, release_memory
from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.progress import tell
from qkv.storage import readable_size
from qkv.training.feeding import batches_of
from qkv.training.footprint import Footprint
from qkv.training.learner import Learner
from qkv.training.processes import Processes
from qkv.training.validation import Validation

_COUNTED_ON = {"cpu": 0.6, "cuda": 0.9}
"""The share of free memory that is taken: others want some, and an estimate leaves out what a step needs for a moment,
which on a CPU was seen to be a third more."""
_LIBRARIES = {"cpu": 1 << 28, "cuda": 0}
"""Bytes that libraries take when they are first used; on a GPU that is seen."""
_EXCHANGE = 1 << 30
"""Bytes that the library which joins GPUs takes for itself, at most."""
_STEPS = 4
"""The first ones set things up, and the third is captured."""


def fitted(config: Config, processes: Processes, prepared: Prepared | None) -> Config:
    """The settings with a number in place of `auto`, which is told; without data it can only be estimated."""
    if config.training.tokens_per_batch != "auto":
        return config
    device = processes.own_device(choose_device(config.training.device))
    processes.connect(device)
    accumulate, width = config.training.accumulate, config.row_width
    least = processes.count * accumulate
    batches = None if prepared is None else batches_of(_with_rows(config, least), prepared, "train")
    # A step of more than all there is would only see it again.
    most = None if batches is None else max(1, len(batches.rows) // least)
    # What this process had before and needs no more would count as taken.
    release_memory(device)
    free = free_memory(device) // processes.sharing(device)
    free = int(_COUNTED_ON[device.type] * max(0, free - _LIBRARIES[device.type]))
    footprint = Footprint.of(config, processes=processes.count)
    held = footprint.fixed + (footprint.checkpoint if device.type == "cpu" else 0)
    own, how = max(0, free - held) // footprint.row, "estimated"
    if prepared is not None and batches is not None and most is not None and _can_try(config, device, processes):
        others = footprint.fixed - Footprint.of(config).fixed + (_EXCHANGE if processes.count > 1 else 0)
        own, how = largest(_trying(config, prepared, batches, device, free - others), own, most), "tried out"
    at_once = processes.least(own if most is None else min(own, most), device)
    if at_once == 0:
        raise ConfigError(
            f"training needs more memory than the {readable_size(free)} that can be counted on here, however small its "
            f"batches; about {readable_size(held + footprint.row)} would be enough for rows of {width}"
        )
    tokens = at_once * least * width
    if processes.first:
        why = "the corpus has no more" if at_once == most else f"{how} for {readable_size(free)} of memory"
        unless = ", unless the corpus has fewer" if batches is None else ""
        tell(f"training.tokens_per_batch is {tokens:,}, which is {at_once * least:,} rows a step: {why}{unless}")
    return config.with_changes(training={"tokens_per_batch": tokens})


def largest(fits: Callable[[int], bool], guess: int, most: int) -> int:
    """The largest number up to `most` that fits, to a sixteenth; 0 where none does."""
    fitting, too_much = 0, most + 1
    trying = max(1, min(most, guess // 4))
    while too_much - fitting > max(1, fitting // 16):
        if fits(trying):
            fitting = trying
        else:
            too_much = trying
        # Until something was too much, twice as much as fitted; from then on, half the way.
        trying = min(2 * fitting, most) if too_much > most else (fitting + too_much) // 2
    return fitting


def _can_try(config: Config, device: torch.device, processes: Processes) -> bool:
    return device.type == "cuda" and (processes.count == 1 or config.training.parallel != "fsdp")


def _trying(
    config: Config, prepared: Prepared, batches: Batches, device: torch.device, limit: int
) -> Callable[[int], bool]:
    """Whether a step of so many rows at once can be taken within so many bytes, with all that comes between steps."""

    def fits(at_once: int) -> bool:
        try:
            with memory_limited(device, limit):
                _rehearse(_with_rows(config, at_once * config.training.accumulate), prepared, batches)
            fitted = True
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            fitted = False
        # Only here is the error gone, and with it all that it led to.
        release_memory(device)
        return fitted

    return fits


def _rehearse(config: Config, prepared: Prepared, batches: Batches) -> None:
    """What a run does, in short: steps, then the loss and translations of held-out sentences."""
    tokenizer = prepared.tokenizer()
    learner = Learner.begin(config, tokenizer.size, Processes())
    learner.model.train()
    batch = batches.of_rows(np.arange(config.rows_a_step) % len(batches.rows))
    for number in range(1, _STEPS + 1):
        learner.take_step.begin(batch, number)()
    learner.take_step.queue.wait()
    with learner.with_best_weights():
        held_out = batches_of(config, prepared, "valid")
        Validation.load(prepared, held_out, tokenizer, config).run(learner.model)


def _with_rows(config: Config, rows: int) -> Config:
    """With so many rows in every step: where batches grow or dropout begins late, it is the last that have to fit."""
    return config.with_changes(
        training={"tokens_per_batch": rows * config.row_width, "ramp_steps": 0, "dropout_after": 0}
    )


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether this was the reason; a graph that cannot be captured for want of memory complains of something else."""
    return error is not None and (isinstance(error, torch.OutOfMemoryError) or _out_of_memory(error.__context__))
