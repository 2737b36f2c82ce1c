"""Builds a model from its configuration; the only reader of `ModelConfig`."""

from __future__ import annotations

from functools import partial

import torch

from qkv.config import ModelConfig
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block, Stack
from qkv.layers.inputs import TokenInputs
from qkv.layers.packed import PackedLinear, can_pack, pack
from qkv.layers.positions import Still, Turn
from qkv.models.choices import (
    FEED_FORWARDS,
    LAST_NORMS,
    NORMS,
    POSITIONS,
    PROJECTIONS,
    QUERY_KEY_NORMS,
    RESIDUALS,
    TURNS,
)
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.models.initialise import initialise


def build(config: ModelConfig, vocabulary: int, *, seed: int) -> EncoderDecoder:
    """A freshly initialised model; the same seed gives the same weights."""
    model = assemble(config, vocabulary)
    initialise(model, seed=seed)
    return model


def assemble(config: ModelConfig, vocabulary: int) -> EncoderDecoder:
    """The model's parts, with weights still to be set."""
    inputs = TokenInputs(
        vocabulary,
        config.width,
        POSITIONS[config.positions](config.width, config.longest),
        dropout=config.dropout,
    )
    encoder = _stack([_block(config, memory=False) for _ in range(config.encoder_layers)], config)
    decoder = _stack([_block(config, memory=True) for _ in range(config.decoder_layers)], config)
    return EncoderDecoder(inputs, encoder, decoder)


def quicken(model: EncoderDecoder) -> None:
    """Lays the weights out for translating on this device, where it has a way to; the model can learn no more."""
    weight_VD = model.inputs.weight_VD
    if can_pack(weight_VD.device):
        pack(model)
        model.logits = PackedLinear(weight_VD, None)


def count_parameters(config: ModelConfig, vocabulary: int) -> int:
    """How many numbers the model learns; costs no memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in assemble(config, vocabulary).parameters())


def _stack(blocks: list[Block], config: ModelConfig) -> Stack:
    return Stack(blocks, LAST_NORMS[config.residual](NORMS[config.norm], config.width))


def _block(config: ModelConfig, *, memory: bool) -> Block:
    return Block(
        self_attention=_attention(config, TURNS[config.positions]()),
        cross_attention=_attention(config, Still()) if memory else None,
        feed_forward=FEED_FORWARDS[config.feed_forward](config.width, config.hidden),
        residual=partial(RESIDUALS[config.residual], config.width, NORMS[config.norm], dropout=config.dropout),
    )


def _attention(config: ModelConfig, turn: Turn) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width,
        config.heads,
        key_width=config.head_key_width,
        value_width=config.head_value_width,
        projection=PROJECTIONS[config.projection],
        norm=QUERY_KEY_NORMS[config.query_key_norm],
        turn=turn,
    )
