"""The weights a model begins with: embeddings of variance one once scaled, matrices that keep the variance."""

from __future__ import annotations

import torch
from torch import nn

from qkv.layers.attention import MultiHeadAttention
from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.inputs import TokenInputs
from qkv.layers.positions import LearnedPositions


def initialise(model: nn.Module, *, seed: int, silent: bool) -> None:
    """Sets every weight from the seed alone, whatever else has drawn random numbers."""
    generator = torch.Generator().manual_seed(seed)
    for part in model.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, generator=generator)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, TokenInputs):
            nn.init.normal_(part.weight_VD, std=part.weight_VD.size(1) ** -0.5, generator=generator)
        elif isinstance(part, LearnedPositions):
            nn.init.normal_(part.weight_KD, std=part.weight_KD.size(1) ** -0.5, generator=generator)
        elif isinstance(part, nn.LayerNorm | nn.RMSNorm):
            part.reset_parameters()
    if silent:
        for part in model.modules():
            if isinstance(part, MultiHeadAttention):
                nn.init.zeros_(part.output.weight)
            elif isinstance(part, FeedForward | GatedFeedForward):
                nn.init.zeros_(part.narrow.weight)
