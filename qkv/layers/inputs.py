"""Embeddings (section 3.4): one matrix reads the source, reads the target and writes the output."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv.layers.dropout import Dropout

Embed = Callable[[Tensor, Tensor, Tensor, nn.Module, Dropout], Tensor]


def embed(ids_RW: Tensor, positions_RW: Tensor, weight_VD: Tensor, positions: nn.Module, dropout: Dropout) -> Tensor:
    """Tokens as vectors, scaled by the root of the width, with their positions added."""
    token_RWD = functional.embedding(ids_RW, weight_VD) * math.sqrt(weight_VD.size(1))
    x_RWD: Tensor = dropout((token_RWD + positions(positions_RW)).to(token_RWD.dtype))
    return x_RWD


class TokenInputs(nn.Module):
    """What a stack begins with; `embed` may be swapped for a quicker way to the same."""

    def __init__(self, vocabulary: int, width: int, positions: nn.Module, *, dropout: float) -> None:
        super().__init__()
        self.weight_VD = nn.Parameter(torch.empty(vocabulary, width))
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.embed: Embed = embed

    def forward(self, ids_RW: Tensor, positions_RW: Tensor) -> Tensor:
        return self.embed(ids_RW, positions_RW, self.weight_VD, self.positions, self.dropout)
