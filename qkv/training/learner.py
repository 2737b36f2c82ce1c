"""A model that learns, with all that a checkpoint keeps of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qkv.checkpoint import Saved
from qkv.config import Config, TrainingConfig
from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.errors import CheckpointError
from qkv.layers.dropout import Dropout
from qkv.models.build import build, use_gpu_parts
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.averaging import Averaging, MovingAverage, NoAverage
from qkv.training.optimizer import build_optimizers
from qkv.training.parallel import trained
from qkv.training.processes import Processes
from qkv.training.schedule_free import ScheduleFree
from qkv.training.step import Step
from qkv.training.weights import KeptWeights


class Learner(NamedTuple):
    """A model, how it takes a step, and what it does that with."""

    model: EncoderDecoder
    """What translates."""
    weights: KeptWeights
    optimizers: list[torch.optim.Optimizer]
    averaging: Averaging
    take_step: Step
    device: torch.device
    precision: torch.dtype

    @classmethod
    def begin(cls, config: Config, vocabulary: int, processes: Processes, start: Saved | None = None) -> Learner:
        """One that has learned nothing, or what another has whose weights are given."""
        options = config.training
        device = processes.own_device(choose_device(options.device))
        model = build(config.model, vocabulary, seed=options.seed).to(device)
        precision = choose_precision(options.precision, device)
        fast = choose_kernels(options.kernels, device)
        if fast:
            use_gpu_parts(model)
        dropouts = [part for part in model.modules() if isinstance(part, Dropout)]
        model, weights, gradients = trained(options, model, precision, processes)
        if start is not None:
            # Before anything is made of them: optimizers and means begin with what is there.
            weights.load(start.tensors["weights"])
        products = [f"{name}.weight" for name, part in model.named_modules() if isinstance(part, nn.Linear)]
        optimizers = build_optimizers(options, weights.exact, products, weights.matrices)
        averaging = averaging_of(options, weights.exact)
        # What the library adds for several processes cannot be captured.
        captured = fast and processes.count == 1
        step = Step(config, gradients, weights, optimizers, averaging, captured=captured, dropouts=dropouts)
        return cls(model, weights, optimizers, averaging, step, device, precision)

    def with_best_weights(self) -> AbstractContextManager[None]:
        """Inside, the model has the weights that it would end with: where a mean of them is kept, that."""
        return self.weights.replaced_by(self.averaging.mean)

    def tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        """All that a checkpoint keeps: file, name and tensor, each made whole when its turn comes.

        All processes have to go through it together.
        """
        whole = self.weights.whole
        for file, tensors in self.averaging.files(self.weights.exact).items():
            for name, tensor in tensors.items():
                yield file, name, whole(name, tensor)
        for optimizer in self.optimizers:
            for parameter, state in optimizer.state.items():
                name = self.weights.name(parameter)
                for what, tensor in state.items():
                    yield "optimizer", f"{name}/{what}", whole(name, tensor)

    def restore(self, saved: Saved) -> None:
        """Goes back to what a checkpoint kept."""
        try:
            self.weights.load(saved.tensors["weights"])
            self._restore_average(saved)
            remembered: dict[str, dict[str, Tensor]] = {name: {} for name in self.weights.exact}
            for key, tensor in saved.tensors["optimizer"].items():
                name, what = key.rsplit("/", 1)
                remembered[name][what] = self.weights.share(name, tensor).to(self.weights.exact[name].device)
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        optimizer.state[parameter] = remembered[self.weights.name(parameter)]
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{saved.directory} does not fit the model of its run's config.json") from error

    @torch.no_grad()
    def _restore_average(self, saved: Saved) -> None:
        for file, tensors in self.averaging.files(self.weights.exact).items():
            for name, tensor in tensors.items():
                tensor.copy_(self.weights.share(name, saved.tensors[file][name]))
        self.averaging.restored(self.weights.exact)
        self.weights.publish()


def averaging_of(options: TrainingConfig, weights: Mapping[str, Tensor]) -> Averaging:
    """What is kept of the weights of all steps."""
    if options.schedule == "free":
        return ScheduleFree(weights, beta=options.beta1, warmup_steps=options.warmup_steps)
    return MovingAverage(weights, options.moving_average) if options.final == "moving" else NoAverage(weights)
