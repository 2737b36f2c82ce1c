"""Scaled dot-product attention (section 3.2.1, equation 1): one signature, and a way to compute it for each need."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from qkv.layers.visibility import Visible

# Not cuDNN's: its backward pass gave gradients that are not numbers once scores grew large (torch 2.11, H200).
_SOUND = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


class Kernel(Protocol):
    """Mixes the values by how well their keys answer the queries, where visible.

    Without `visible`, all see all.
    """

    def __call__(self, query_RHWE: Tensor, key_RHKE: Tensor, value_RHKU: Tensor, visible: Visible | None) -> Tensor: ...


def fused(query_RHWE: Tensor, key_RHKE: Tensor, value_RHKU: Tensor, visible: Visible | None) -> Tensor:
    """The library's kernel, which never writes the weights to memory: for training and translating."""
    with sdpa_kernel(_SOUND) if query_RHWE.is_cuda else nullcontext():
        return functional.scaled_dot_product_attention(
            query_RHWE, key_RHKE, value_RHKU, attn_mask=visible.mask if visible else None
        )


def weights(query_RHWE: Tensor, key_RHKE: Tensor, visible: Visible | None) -> Tensor:
    """softmax(QKᵀ / √d_k): how much of each position every query takes."""
    score_RHWK = query_RHWE @ key_RHKE.transpose(-2, -1) / math.sqrt(query_RHWE.size(-1))
    if visible is not None:
        score_RHWK = score_RHWK.masked_fill(~visible.mask, -torch.inf)
    return score_RHWK.softmax(-1)


class Recording:
    """Equation 1 as the paper writes it; keeps the weights of its last call for whoever wants to look."""

    def __init__(self) -> None:
        self.weight_RHWK: Tensor | None = None

    def __call__(self, query_RHWE: Tensor, key_RHKE: Tensor, value_RHKU: Tensor, visible: Visible | None) -> Tensor:
        weight_RHWK = weights(query_RHWE, key_RHKE, visible)
        self.weight_RHWK = weight_RHWK.detach()
        return weight_RHWK @ value_RHKU
