"""The batches of a run: laid out from its prepared data, some steps ahead of the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import torch

from qkv.config import Config, TrainingConfig
from qkv.data.batch import PairBatch
from qkv.data.batches import Batches, Marks
from qkv.data.ramp import Ramp
from qkv.prepare import Prepared
from qkv.training.processes import Processes

_AHEAD = 3
"""Batches made while others are computed with."""


def batches_of(config: Config, prepared: Prepared, name: str) -> Batches:
    """Those of one part of the data: `train` or `valid`, which has all its pairs however training lays out its rows."""
    tokenizer = prepared.tokenizer()
    width = config.row_width if name == "train" else config.data.row_width
    return Batches(
        prepared.corpus(name),
        width=width,
        rows_a_step=max(1, config.rows_a_step * config.row_width // width),
        marks=Marks(tokenizer.padding, tokenizer.begin, tokenizer.end),
        seed=config.training.seed,
        leave_out_longer=width < config.data.row_width,
        ramp=ramp_of(config.training),
    )


def ramp_of(options: TrainingConfig) -> Ramp:
    """How its batches grow."""
    return Ramp(options.ramp_sizes if options.ramp_steps else 1, options.ramp_steps)


def prefetched(
    batches: Batches, steps: range, processes: Processes, device: torch.device
) -> Generator[PairBatch, None, None]:
    """This process's share of the steps to come, the next one made while the last one is computed with."""

    def make(step: int) -> PairBatch:
        batch = batches.of_step(step, share=processes.rank, shares=processes.count)
        return batch.pinned() if device.type == "cuda" else batch

    with ThreadPoolExecutor(1) as maker:
        coming = deque(maker.submit(make, step) for step in steps[:_AHEAD])
        for step in steps:
            batch = coming.popleft().result()
            coming.append(maker.submit(make, step + _AHEAD))
            yield batch
