"""Averages of weights: a moving one kept while training, and what a finished run takes as its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qkv.checkpoint import average, read
from qkv.config import TrainingConfig


class MovingAverage:
    """Weights that follow the model's slowly; `decay` of them stays at each step, once there have been enough."""

    def __init__(self, model: nn.Module, decay: float, tensors: dict[str, Tensor] | None = None) -> None:
        self._decay = decay
        device = next(model.parameters()).device
        source = tensors or {name: one.detach() for name, one in model.named_parameters()}
        self.tensors = {name: tensor.to(device, copy=True) for name, tensor in source.items()}

    @torch.no_grad()
    def follow(self, model: nn.Module, step: int) -> None:
        # At the beginning the average is as short as the run, or the first, random weights would weigh it down.
        decay = min(self._decay, (1 + step) / (10 + step))
        now = dict(model.named_parameters())
        own = list(self.tensors.values())
        torch._foreach_lerp_(own, [now[name].detach() for name in self.tensors], 1 - decay)

    @contextmanager
    def in_place_of(self, model: nn.Module) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        parameters = dict(model.named_parameters())
        saved = {name: parameter.data for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            parameter.data = self.tensors[name]
        try:
            yield
        finally:
            for name, parameter in parameters.items():
                parameter.data = saved[name]


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
