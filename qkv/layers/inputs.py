"""Embeddings (section 3.4): one matrix reads the source, reads the target and writes the output."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv.layers.dropout import Dropout


class TokenInputs(nn.Module):
    """Tokens as vectors, scaled by the root of the width, with their positions added."""

    def __init__(self, vocabulary: int, width: int, positions: nn.Module, *, dropout: float) -> None:
        super().__init__()
        self.weight_VD = nn.Parameter(torch.empty(vocabulary, width))
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(self, ids_RW: Tensor, positions_RW: Tensor) -> Tensor:
        token_RWD = functional.embedding(ids_RW, self.weight_VD) * math.sqrt(self.weight_VD.size(1))
        x_RWD: Tensor = self.dropout(token_RWD + self.positions(positions_RW))
        return x_RWD
