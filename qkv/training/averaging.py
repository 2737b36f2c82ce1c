"""Averages of weights: a moving one kept while training, and what a finished run takes as its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from qkv.checkpoint import average, read
from qkv.config import TrainingConfig


class MovingAverage:
    """Weights that follow the model's slowly; `decay` of them stays at each step, once there have been enough."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self._decay = decay
        self.tensors = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def decay_at(self, step: int) -> float:
        # At the beginning the average is as short as the run, or the first, random weights would weigh it down.
        return min(self._decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def follow(self, weights: Mapping[str, Tensor], share: Tensor) -> None:
        """Goes this share of the way to the weights."""
        apart = torch._foreach_sub([weights[name] for name in self.tensors], list(self.tensors.values()))
        torch._foreach_mul_(apart, share)
        torch._foreach_add_(list(self.tensors.values()), apart)


class Final(NamedTuple):
    """How the weights of a finished run are made: of how many checkpoints, and what they are then."""

    count: Callable[[TrainingConfig], int]
    weights: Callable[[list[Path]], dict[str, Tensor]]


FINAL = {
    "last": Final(lambda _: 1, lambda checkpoints: read(checkpoints[-1], weights_only=True).tensors["weights"]),
    "checkpoints": Final(lambda config: config.average_checkpoints, average),
    "moving": Final(lambda _: 1, lambda checkpoints: read(checkpoints[-1]).tensors["moving"]),
}
"""Every row of `training.final`."""
