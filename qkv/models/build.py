"""Builds a model from its configuration."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from qkv.config import ModelConfig
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block, Stack
from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.inputs import TokenInputs
from qkv.layers.ordered import OrderedLinear, can_order, order
from qkv.layers.positions import Still, Turn
from qkv.layers.residual import PostNorm, PreNorm
from qkv.models.choices import (
    FEED_FORWARDS,
    LASTS,
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
    initialise(model, seed=seed, silent=config.initial == "silent")
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


def order_weights(model: EncoderDecoder) -> None:
    """Orders the weights for translating on this device, where it has a way to; the model can learn no more."""
    weight_VD = model.inputs.weight_VD
    if can_order(weight_VD.device):
        order(model)
        model.logits = OrderedLinear(weight_VD, None)


def use_gpu_parts(model: EncoderDecoder) -> None:
    """Swaps in the GPU's twins of the plain parts: the model computes the same, faster, and is trained as before."""
    # Where there is no GPU there may be no Triton either.
    from qkv.layers.gpu import attention, feed_forward, inputs, loss, projection, residual, turn

    twins: list[tuple[type, str, Any]] = [
        (EncoderDecoder, "loss_chunks", loss.CHUNKS),
        (TokenInputs, "embed", inputs.embed),
        (Stack, "project", projection.together),
        (MultiHeadAttention, "project", projection.together),
        (MultiHeadAttention, "turned", turn.normed_and_turned),
        (MultiHeadAttention, "kernel", attention.tiled),
        (PostNorm, "join", residual.norm_of_sum),
        (PreNorm, "join", residual.sum_and_norm),
        (FeedForward, "network", feed_forward.relu_network),
        (GatedFeedForward, "network", feed_forward.gated_network),
    ]
    for part in model.modules():
        for kind, name, twin in twins:
            if isinstance(part, kind):
                setattr(part, name, twin)


def count_parameters(config: ModelConfig, vocabulary: int) -> int:
    """How many numbers the model learns; costs no memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in assemble(config, vocabulary).parameters())


def _stack(blocks: list[Block], config: ModelConfig) -> Stack:
    return Stack(blocks, LASTS[config.residual](config.width, NORMS[config.norm], dropout=config.dropout))


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
