"""Averages of weights: those kept while training, and what a finished run takes as its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from qkv.checkpoint import average, read
from qkv.config import TrainingConfig


class Averaging(ABC):
    """What is kept of the weights of all steps, given those that gradients are taken at."""

    mean: Mapping[str, Tensor]
    """What the run would end with."""

    @abstractmethod
    def share_at(self, step: int) -> float:
        """How far the mean goes to the weights of a step, counted from 1."""

    def before(self, weights: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Makes the weights those that the optimizers are to move: most move the ones that gradients are taken at."""
        return

    @abstractmethod
    def after(self, weights: Mapping[str, Tensor], share: Tensor) -> None:
        """Takes them as the optimizers left them, and makes them those of the next gradient."""

    @abstractmethod
    def files(self, weights: Mapping[str, Tensor]) -> dict[str, Mapping[str, Tensor]]:
        """What a checkpoint keeps, by file."""

    def restored(self, weights: Mapping[str, Tensor]) -> None:  # noqa: ARG002
        """Makes the weights those of the next gradient, when all files are back where they were."""
        return


class NoAverage(Averaging):
    """The last weights are all there is."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.mean = weights

    def share_at(self, step: int) -> float:  # noqa: ARG002
        return 1.0

    def after(self, weights: Mapping[str, Tensor], share: Tensor) -> None:  # noqa: ARG002
        return

    def files(self, weights: Mapping[str, Tensor]) -> dict[str, Mapping[str, Tensor]]:
        return {"weights": weights}


class MovingAverage(Averaging):
    """Weights that follow the model's slowly; `decay` of them stays at each step, once there have been enough."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self._decay = decay
        self.mean = copied(weights)

    def share_at(self, step: int) -> float:
        # At the beginning the average is as short as the run, or the first, random weights would weigh it down.
        return 1 - min(self._decay, (1 + step) / (10 + step))

    def after(self, weights: Mapping[str, Tensor], share: Tensor) -> None:
        follow(self.mean, weights, share)

    def files(self, weights: Mapping[str, Tensor]) -> dict[str, Mapping[str, Tensor]]:
        return {"weights": weights, "moving": self.mean}


def copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


@torch.no_grad()
def follow(mean: Mapping[str, Tensor], weights: Mapping[str, Tensor], share: Tensor) -> None:
    """The mean goes this share of the way to the weights."""
    apart = torch._foreach_sub(list(weights.values()), list(mean.values()))
    torch._foreach_mul_(apart, share)
    torch._foreach_add_(list(mean.values()), apart)


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
