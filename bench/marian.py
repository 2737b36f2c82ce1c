"""transformers' MarianMTModel of the same architecture as ours, run as its users run it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from qkv.config import ModelConfig

PADDING, BEGIN, END = 0, 1, 2


def marian(config: ModelConfig, vocabulary: int, *, positions: int) -> Any:
    """A MarianMTModel with the sizes of this configuration and fresh weights."""
    from transformers import MarianConfig, MarianMTModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    return MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=config.width,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.hidden,
            decoder_ffn_dim=config.hidden,
            activation_function="relu",
            dropout=config.dropout,
            scale_embedding=True,
            max_position_embeddings=positions,
            pad_token_id=PADDING,
            eos_token_id=END,
            decoder_start_token_id=BEGIN,
            forced_eos_token_id=None,
        )
    )


def padded(sentences: list[list[int]], *, filler: int) -> Tensor:
    """Sentences as rows, each padded to the longest."""
    width = max(map(len, sentences))
    return torch.tensor([ids + [filler] * (width - len(ids)) for ids in sentences])
