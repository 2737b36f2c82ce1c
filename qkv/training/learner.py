"""A model that learns, with all that a checkpoint keeps of it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qkv.checkpoint import Saved, Tensors
from qkv.config import Config
from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.errors import CheckpointError
from qkv.models.build import build, hasten
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.averaging import MovingAverage
from qkv.training.optimizer import build_optimizers
from qkv.training.step import Step
from qkv.training.weights import Weights


class Learner(NamedTuple):
    """A model, how it takes a step, and what it does that with."""

    model: EncoderDecoder
    """What translates."""
    weights: Weights
    optimizers: list[torch.optim.Optimizer]
    moving: MovingAverage | None
    take_step: Step
    device: torch.device
    precision: torch.dtype

    @classmethod
    def begin(cls, config: Config, vocabulary: int) -> Learner:
        """One that has learned nothing."""
        options = config.training
        device = choose_device(options.device)
        model = build(config.model, vocabulary, seed=options.seed).to(device)
        precision = choose_precision(options.precision, device)
        fast = choose_kernels(options.kernels, device)
        if fast:
            hasten(model)
        weights = Weights(model, precision)
        products = [f"{name}.weight" for name, part in model.named_modules() if isinstance(part, nn.Linear)]
        optimizers = build_optimizers(options, weights.exact, products)
        moving = MovingAverage(weights.exact, options.moving_average) if options.final == "moving" else None
        step = Step(config, model, weights, optimizers, moving, captured=fast)
        return cls(model, weights, optimizers, moving, step, device, precision)

    def with_best_weights(self) -> AbstractContextManager[None]:
        """Inside, the model has the weights that it would end with: where there is a moving average, that."""
        return nullcontext() if self.moving is None else self.weights.replaced_by(self.moving.tensors)

    def tensors(self) -> dict[str, Tensors]:
        """All that a checkpoint keeps."""
        tensors: dict[str, Tensors] = {"weights": self.weights.exact, "optimizer": self._remembered()}
        if self.moving is not None:
            tensors["moving"] = self.moving.tensors
        return tensors

    def restore(self, saved: Saved) -> None:
        """Goes back to what a checkpoint kept."""
        try:
            self.weights.load(saved.tensors["weights"])
            if self.moving is not None:
                for name, tensor in self.moving.tensors.items():
                    tensor.copy_(saved.tensors["moving"][name])
            remembered: dict[str, dict[str, Tensor]] = {name: {} for name in self.weights.exact}
            for key, tensor in saved.tensors["optimizer"].items():
                name, what = key.rsplit("/", 1)
                remembered[name][what] = tensor.to(self.weights.exact[name].device)
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        optimizer.state[parameter] = remembered[self.weights.name(parameter)]
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{saved.directory} does not fit the model of its run's config.json") from error

    def _remembered(self) -> dict[str, Tensor]:
        """What the optimizers remember of each parameter, by name."""
        return {
            f"{self.weights.name(parameter)}/{what}": tensor
            for optimizer in self.optimizers
            for parameter, state in optimizer.state.items()
            for what, tensor in state.items()
        }
