"""How several processes train one model: each computes with a share of a batch's rows, and torch does the rest.

A loss is a sum until the tokens of the whole batch divide it, so gradients are averaged by tokens and not by processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from qkv.config import TrainingConfig
from qkv.errors import ConfigError
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.objective import Goal
from qkv.training.processes import Processes
from qkv.training.step import Alone, Gradients
from qkv.training.weights import KeptWeights, Weights


class Trained(NamedTuple):
    """A model that is trained."""

    model: EncoderDecoder
    """What translates."""
    weights: KeptWeights
    gradients: Gradients


def trained(options: TrainingConfig, model: EncoderDecoder, precision: torch.dtype, processes: Processes) -> Trained:
    """The model, trained by these processes as `training.parallel` says; one process needs none of its ways."""
    if processes.count == 1:
        return _alone(options, model, precision, processes)
    if options.parallel == "none":
        raise ConfigError(f"training.parallel=none is for one process, and {processes.count} were started; try auto")
    return PARALLEL[options.parallel](options, model, precision, processes)


def require_rows(rows: int, options: TrainingConfig, count: int) -> None:
    """Every process needs a row for each part of a step."""
    if rows < count * options.accumulate:
        raise ConfigError(
            f"a step has {rows} rows, too few for {count} processes with {options.accumulate} parts each; "
            "use fewer processes or more training.tokens_per_batch"
        )


def _alone(options: TrainingConfig, model: EncoderDecoder, precision: torch.dtype, processes: Processes) -> Trained:
    weights = Weights(model, precision)
    return Trained(model, weights, Alone(model, weights, Goal.of(options), processes))


def _replicated(
    options: TrainingConfig, model: EncoderDecoder, precision: torch.dtype, processes: Processes
) -> Trained:
    from qkv.training.replicated import Replicated

    weights = Weights(model, precision)
    return Trained(model, weights, Replicated(model, weights, Goal.of(options), processes))


def _sharded(options: TrainingConfig, model: EncoderDecoder, precision: torch.dtype, processes: Processes) -> Trained:
    # Importing it takes a second.
    from qkv.training.sharded import shard

    return Trained(*shard(model, precision, Goal.of(options), processes))


PARALLEL: dict[str, Callable[[TrainingConfig, EncoderDecoder, torch.dtype, Processes], Trained]] = {
    "auto": _replicated,
    "ddp": _replicated,
    "fsdp": _sharded,
}
"""Every row of `training.parallel` that is for several processes."""
