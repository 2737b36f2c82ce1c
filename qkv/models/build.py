"""Builds a model from its configuration; the only reader of `ModelConfig`."""

from __future__ import annotations

from functools import partial

import torch

from qkv.config import ModelConfig
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block, Stack
from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.inputs import TokenInputs
from qkv.layers.packed import PackedLinear, can_pack, pack
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


def quicken(model: EncoderDecoder) -> None:
    """Lays the weights out for translating on this device, where it has a way to; the model can learn no more."""
    weight_VD = model.inputs.weight_VD
    if can_pack(weight_VD.device):
        pack(model)
        model.logits = PackedLinear(weight_VD, None)


def hasten(model: EncoderDecoder) -> None:
    """Swaps in the GPU's twins of the plain parts: the model computes the same, faster, and is trained as before."""
    from qkv.layers.gpu import attention, feed_forward, inputs, loss, projection, residual, turn

    model.loss_chunks = loss.CHUNKS
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.kernel = attention.tiled
            part.project = projection.together
            part.turned = turn.normed_and_turned
        elif isinstance(part, Stack):
            part.project = projection.together
        elif isinstance(part, PostNorm):
            part.join = residual.norm_of_sum
        elif isinstance(part, PreNorm):
            part.join = residual.sum_and_norm
        elif isinstance(part, TokenInputs):
            part.embed = inputs.embed
        elif isinstance(part, FeedForward):
            part.network = feed_forward.relu_network
        elif isinstance(part, GatedFeedForward):
            part.network = feed_forward.gated_network


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
