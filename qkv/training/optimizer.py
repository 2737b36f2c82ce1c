"""Optimizers and learning rates (section 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import nn

from qkv.config import TrainingConfig
from qkv.training.muon import UNCUT, Matrices, Muon


def build_optimizers(
    config: TrainingConfig,
    weights: Mapping[str, nn.Parameter],
    hidden: Collection[str],
    matrices: Matrices = UNCUT,
) -> list[torch.optim.Optimizer]:
    """The optimizers of this configuration; `hidden` names the matrices between a model's first and last layer."""
    return OPTIMIZERS[config.optimizer](config, weights, hidden, matrices)


def _adam(
    kind: type[torch.optim.Adam], config: TrainingConfig, weights: Mapping[str, nn.Parameter], rate: str
) -> torch.optim.Optimizer:
    """Matrices decay, vectors (norms, biases) do not; each group names the setting that is its learning rate."""
    groups = [
        {"params": [one for one in weights.values() if one.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [one for one in weights.values() if one.ndim < 2], "weight_decay": 0.0},
    ]
    return kind(
        [{**group, "rate": rate} for group in groups if group["params"]],
        lr=config.learning_rate,
        # Free of a schedule, the mean of the weights is the momentum.
        betas=(0.0 if config.schedule == "free" else config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
        # A captured step may not count on the CPU.
        capturable=next(iter(weights.values())).is_cuda,
    )


def _muon(
    config: TrainingConfig, weights: Mapping[str, nn.Parameter], hidden: Collection[str], matrices: Matrices
) -> list[torch.optim.Optimizer]:
    rest = {name: one for name, one in weights.items() if name not in hidden}
    groups = [{"params": [weights[name] for name in hidden], "rate": "rate"}]
    return [
        Muon(groups, weight_decay=config.weight_decay, matrices=matrices),
        _adam(torch.optim.AdamW, config, rest, "rest_rate"),
    ]


OPTIMIZERS: dict[
    str,
    Callable[[TrainingConfig, Mapping[str, nn.Parameter], Collection[str], Matrices], list[torch.optim.Optimizer]],
] = {
    "adam": lambda config, weights, *_: [_adam(torch.optim.Adam, config, weights, "rate")],
    "adamw": lambda config, weights, *_: [_adam(torch.optim.AdamW, config, weights, "rate")],
    "muon": _muon,
}


def learning_rate(config: TrainingConfig, width: int, step: int) -> float:
    """The learning rate of a step, counted from 1."""
    return config.learning_rate * SCHEDULES[config.schedule](config, width, step)


def paper_learning_rate(step: int, width: int, warmup_steps: int) -> float:
    """Equation 3: rises in a line, then falls with the square root of the step."""
    return float(width**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def linear_learning_rate(step: int, steps: int, warmup_steps: int, decay_from: float) -> float:
    """Rises in a line, stays, then falls in a line that reaches zero after the last step."""
    left = (steps + 1 - step) / (steps + 1 - decay_from * steps)
    return max(0.0, min(1.0, step / warmup_steps, left))


def _constant(config: TrainingConfig, width: int, step: int) -> float:  # noqa: ARG001
    return min(1.0, step / config.warmup_steps)


SCHEDULES: dict[str, Callable[[TrainingConfig, int, int], float]] = {
    "paper": lambda config, width, step: paper_learning_rate(step, width, config.warmup_steps),
    "linear": lambda config, _, step: linear_learning_rate(step, config.steps, config.warmup_steps, config.decay_from),
    "constant": _constant,
    "free": _constant,
}
"""Every row of `training.schedule`; free of one, a mean of all weights does what a falling rate would."""
