"""From the MarianMT models of Hugging Face transformers, which are the paper's but for the order of dimensions.

Marian lays the waves of its positions out as [sines | cosines]; the paper, and we, as sine, cosine, sine, cosine.
Nothing in the model minds in which order the dimensions of its main stream stand, so they are put into the paper's
order, on every side of a weight that touches the stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from qkv.config import ModelConfig
from qkv.errors import ConfigError


def from_marian(settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The same model as ours: settings as in its config.json, weights as in its state dict."""
    _refuse_what_we_cannot_say(settings, weights)
    config = ModelConfig(
        width=settings["d_model"],
        heads=settings["encoder_attention_heads"],
        hidden=settings["encoder_ffn_dim"],
        encoder_layers=settings["encoder_layers"],
        decoder_layers=settings["decoder_layers"],
        dropout=settings["dropout"],
        projection="biased",
    )
    order = torch.arange(config.width).view(2, -1).T.flatten()
    ours = {"inputs.weight_VD": weights["model.shared.weight"][:, order].clone()}
    for name, weight in weights.items():
        if match := _IN_A_LAYER.fullmatch(name):
            stack, number, part, kind = match.groups()
            place, side = _PARTS[part]
            ours[f"{stack}.blocks.{number}.{place}.{kind}"] = _reordered(weight, side, order)
    return config, ours


_IN_A_LAYER = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)")

_READS, _WRITES = "reads the stream", "writes the stream"

_PARTS = {
    "self_attn.q_proj": ("self_attention.query", _READS),
    "self_attn.k_proj": ("self_attention.key", _READS),
    "self_attn.v_proj": ("self_attention.value", _READS),
    "self_attn.out_proj": ("self_attention.output", _WRITES),
    "self_attn_layer_norm": ("around_self_attention.norm", _WRITES),
    "encoder_attn.q_proj": ("cross_attention.query", _READS),
    "encoder_attn.k_proj": ("cross_attention.key", _READS),
    "encoder_attn.v_proj": ("cross_attention.value", _READS),
    "encoder_attn.out_proj": ("cross_attention.output", _WRITES),
    "encoder_attn_layer_norm": ("around_cross_attention.norm", _WRITES),
    "fc1": ("feed_forward.widen", _READS),
    "fc2": ("feed_forward.narrow", _WRITES),
    "final_layer_norm": ("around_feed_forward.norm", _WRITES),
}


def _reordered(weight: Tensor, side: str, order: Tensor) -> Tensor:
    """A matrix is outputs by inputs; the bias of what reads the stream does not touch it."""
    if side == _WRITES:
        return weight[order].clone()
    return weight[:, order].clone() if weight.dim() == 2 else weight.clone()


_NEEDED = {
    "activation_function": "relu",
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
}
_UNSAID = {**_NEEDED, "activation_function": "gelu", "scale_embedding": False}
"""What transformers takes where a config.json says nothing."""


def _refuse_what_we_cannot_say(settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    for name, needed in _NEEDED.items():
        given = settings.get(name, _UNSAID[name])
        if given != needed:
            raise ConfigError(f"this Marian model has {name} {given!r}; only {needed!r} can be converted")
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = settings[f"encoder_{name}"], settings[f"decoder_{name}"]
        if encoder != decoder:
            raise ConfigError(
                f"this Marian model has encoder_{name} {encoder} and decoder_{name} {decoder}; "
                "only one for both can be converted"
            )
    if weights["final_logits_bias"].any():
        raise ConfigError("this Marian model adds final_logits_bias to its output; only zeros can be converted")
