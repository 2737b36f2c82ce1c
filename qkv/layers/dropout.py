"""Dropout (section 5.4): each number is left out with some probability, the others are scaled up to make up for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Module):
    """The library's dropout, but for the CPU, where drawing a random float for each number is slow."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    @property
    def now(self) -> float:
        """The probability as it stands: zero unless the model is learning."""
        return self.probability if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        if self.now == 0:
            return x
        return _DROPOUTS.get(x.device.type, functional.dropout)(x, self.probability)


def dropout_by_bits(x: Tensor, probability: float) -> Tensor:
    """Sixteen random bits decide on each number, so a draw of 64 bits serves four; exact to 1 / 65536."""
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    # No more than the largest draw, which alone is then kept: the next number would count as the smallest.
    threshold = min(round(probability * 2**16) - 2**15, 2**15 - 1)
    keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
    return torch.where(keep, x * (1 / (1 - probability)), 0.0)


_DROPOUTS = {"cpu": dropout_by_bits}
