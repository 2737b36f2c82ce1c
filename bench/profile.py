"""Where the time of a training step goes, by kind of work.

A step is one graph, in which a kernel does not say who asked for it; and Muon's products are products like any other.
So the optimizers also take their steps by themselves: what their kernels take there is theirs in the step too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.training.learner import Learner
from qkv.training.processes import Processes

OPTIMIZER = "optimizer, norm of the gradient, copies of weights"
KINDS = {
    # Before the products: the library's attention is made of their parts, and named after them.
    "attention": ("_attend", "fmha", "flash", "sdpa"),
    "matrix products": ("nvjet", "gemm", "cutlass", "splitK"),
    "sum, dropout and norm": ("_add_and_norm",),
    "loss and its gradient": ("_loss_and_gradient",),
    "feed-forward's ReLU or gate": ("_cut_off", "_gate"),
    "norm and turn of queries and keys": ("_turn",),
    "embeddings": ("_embed", "_keep", "compute_grad_weight", "sum_and_scatter", "RadixSort", "krn_partial"),
    OPTIMIZER: ("multi_tensor_apply", "Lpnorm"),
    "joining and copying": ("CatArray", "copy"),
    "sums": ("reduce_kernel",),
}
"""What the names of kernels contain, by kind; the first that fits counts."""
_SETTING_UP = 5
_STEPS = 3

Kernels = dict[str, float]
"""Milliseconds a step, by the name of a kernel."""


class Profile(NamedTuple):
    step: Kernels
    optimizers: Kernels
    """Of their steps alone."""

    def by_kind(self) -> dict[str, float]:
        """Milliseconds of each kind of work in a step; what the optimizers' own kernels take is the optimizer's."""
        spent = dict.fromkeys([*KINDS, "all else"], 0.0)
        own = self.own()
        for name, milliseconds in self.step.items():
            spent[kind_of(name)] += milliseconds - own[name]
            spent[OPTIMIZER] += own[name]
        return {kind: milliseconds for kind, milliseconds in spent.items() if milliseconds > 0}

    def own(self) -> Kernels:
        """What the optimizers take of each kernel of a step: no more than the step has of it."""
        return {name: min(self.optimizers.get(name, 0.0), milliseconds) for name, milliseconds in self.step.items()}


def profile_step(config: Config, batch: PairBatch, vocabulary: int) -> None:
    """Prints each kind's milliseconds a step and its share."""
    profiled = profile_of(config, batch, vocabulary)
    spent = profiled.by_kind()
    total = sum(spent.values())
    for kind, milliseconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{milliseconds:8.2f} ms {milliseconds / total:6.1%}  {kind}")
    print(f"{total:8.2f} ms a step on the device")
    own, alone = sum(profiled.own().values()), sum(profiled.optimizers.values())
    print(
        f"{own:8.2f} ms of it are the optimizers' own, by the same kernels in {alone:.2f} ms that they took alone; "
        "a step does not say whose its kernels are"
    )


def profile_of(config: Config, batch: PairBatch, vocabulary: int) -> Profile:
    """Of steps on this batch, and of the optimizers' on the gradients that it has left."""
    learner = Learner.begin(config, vocabulary, Processes())
    step = learner.take_step
    learner.model.train()
    for number in range(1, 1 + _SETTING_UP):
        step.begin(batch, number)()

    def steps() -> None:
        for number in range(1 + _SETTING_UP, 1 + _SETTING_UP + _STEPS):
            step.begin(batch, number)()
        step.queue.wait()

    def optimizers() -> None:
        for _ in range(_STEPS):
            for optimizer in learner.optimizers:
                optimizer.step()

    return Profile(_kernels(steps, learner.device), _kernels(optimizers, learner.device))


def kind_of(kernel: str) -> str:
    return next((kind for kind, names in KINDS.items() if any(one in kernel for one in names)), "all else")


def _kernels(steps: Callable[[], None], device: torch.device) -> Kernels:
    """What some steps have the device do; a CPU has no kernels, but functions of the library."""
    activity, time_of = _WAYS[device.type]
    with profile(activities=[activity]) as profiled:
        steps()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return {event.key: getattr(event, time_of) / 1000 / _STEPS for event in profiled.key_averages()}


_WAYS: Mapping[str, tuple[ProfilerActivity, str]] = {
    "cuda": (ProfilerActivity.CUDA, "self_device_time_total"),
    "cpu": (ProfilerActivity.CPU, "self_cpu_time_total"),
}
