"""Where a token stands (section 3.5): added to its embedding, or turned into its queries and keys."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

LONGEST_WAVE = 10_000.0


class Turn(Protocol):
    """Turns a head's queries or keys by their positions."""

    def __call__(self, x_RHWE: Tensor, positions_RW: Tensor) -> Tensor: ...


class Sinusoids(nn.Module):
    """Waves from 2π to 10000·2π: even dimensions are sines, odd ones cosines; any length, nothing to learn."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions_RW: Tensor) -> Tensor:
        angle = _angles(positions_RW, self.width)
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """A learned vector for each position, up to a longest one (Table 3, row E)."""

    def __init__(self, width: int, *, longest: int) -> None:
        super().__init__()
        self.weight_KD = nn.Parameter(torch.empty(longest, width))

    def forward(self, positions_RW: Tensor) -> Tensor:
        return nn.functional.embedding(positions_RW, self.weight_KD)


class Nowhere(nn.Module):
    """Adds nothing: the position is told elsewhere."""

    def forward(self, positions_RW: Tensor) -> Tensor:
        return torch.zeros((), device=positions_RW.device)


class Rotary(nn.Module):
    """Turns pairs of dimensions by an angle that grows with the position, so that a score sees only distance."""

    def forward(self, x_RHWE: Tensor, positions_RW: Tensor) -> Tensor:
        angle = _angles(positions_RW, x_RHWE.size(-1)).unsqueeze(1)
        cosine, sine = angle.cos().to(x_RHWE.dtype), angle.sin().to(x_RHWE.dtype)
        even, odd = x_RHWE[..., 0::2], x_RHWE[..., 1::2]
        return torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], dim=-1).flatten(-2)


class Still(nn.Module):
    """Turns nothing."""

    def forward(self, x_RHWE: Tensor, positions_RW: Tensor) -> Tensor:  # noqa: ARG002
        return x_RHWE


def _angles(positions_RW: Tensor, width: int) -> Tensor:
    """pos / 10000^(2i/width) for each position and each of the width/2 pairs of dimensions."""
    pair = torch.arange(0, width, 2, device=positions_RW.device, dtype=torch.float32)
    return positions_RW.unsqueeze(-1) * torch.exp(pair * (-math.log(LONGEST_WAVE) / width))
