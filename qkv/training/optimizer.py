"""Optimizers and learning rates (section 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from qkv.config import TrainingConfig

OPTIMIZERS: dict[str, type[torch.optim.Adam] | type[torch.optim.AdamW]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


def build_optimizer(config: TrainingConfig, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer of this configuration; matrices decay, vectors (norms, biases) do not."""
    parameters = list(parameters)
    groups = [
        {"params": [one for one in parameters if one.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [one for one in parameters if one.ndim < 2], "weight_decay": 0.0},
    ]
    return OPTIMIZERS[config.optimizer](
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


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


SCHEDULES: dict[str, Callable[[TrainingConfig, int, int], float]] = {
    "paper": lambda config, width, step: paper_learning_rate(step, width, config.warmup_steps),
    "linear": lambda config, _, step: linear_learning_rate(step, config.steps, config.warmup_steps, config.decay_from),
    "constant": lambda config, _, step: min(1.0, step / config.warmup_steps),
}
