"""Embeddings, scaled, with positions added and dropout, in one pass (section 3.4)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from qkv.layers.dropout import Dropout
from qkv.layers.gpu.random import kept
from qkv.layers.inputs import embed as plain_embed


def embed(ids_RW: Tensor, positions_RW: Tensor, weight_VD: Tensor, positions: nn.Module, dropout: Dropout) -> Tensor:
    """dropout(√d · E[ids] + P[positions]): the twin of `inputs.embed` for rows that are learned from."""
    if not torch.is_grad_enabled():
        # In search a row is the next token alone, at whatever position; in training none is past the row's width.
        return plain_embed(ids_RW, positions_RW, weight_VD, positions, dropout)
    every_1K = torch.arange(ids_RW.size(1), device=ids_RW.device).unsqueeze(0)
    position_KD = positions(every_1K).expand(1, ids_RW.size(1), weight_VD.size(1))[0].contiguous()
    seed = torch.empty((), dtype=torch.int64, device=ids_RW.device).random_()
    x_RWD: Tensor = _Embed.apply(  # type: ignore[no-untyped-call]
        ids_RW.contiguous(), positions_RW.contiguous(), weight_VD, position_KD, seed, dropout.now
    )
    return x_RWD


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, ids_RW: Tensor, positions_RW: Tensor, weight_VD: Tensor, position_KD: Tensor, seed: Tensor, p: float
    ) -> Tensor:
        V, D = weight_VD.shape
        x_RWD = weight_VD.new_empty(*ids_RW.shape, D)
        _embed[(ids_RW.numel(),)](
            ids_RW, positions_RW, weight_VD, position_KD, seed, x_RWD, D, D**0.5, p,
            BLOCK=triton.next_power_of_2(D), DROPS=p > 0, num_warps=2,
        )  # fmt: skip
        ctx.save_for_backward(ids_RW, positions_RW, seed)
        ctx.p, ctx.vocabulary, ctx.positions = p, V, position_KD.size(0)
        return x_RWD

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        ids_RW, positions_RW, seed = ctx.saved_tensors
        gradient_RWD = gradients[0].contiguous()
        D = gradient_RWD.size(2)
        if ctx.p > 0:
            kept_RWD = torch.empty_like(gradient_RWD)
            _keep[(ids_RW.numel(),)](
                gradient_RWD, kept_RWD, seed, D, ctx.p, BLOCK=triton.next_power_of_2(D), num_warps=2
            )
            gradient_RWD = kept_RWD
        backward = torch.ops.aten.embedding_dense_backward
        weight_gradient = backward(gradient_RWD, ids_RW, ctx.vocabulary, -1, False).mul_(D**0.5)
        learned = ctx.needs_input_grad[3]
        position_gradient = backward(gradient_RWD, positions_RW, ctx.positions, -1, False) if learned else None
        return None, None, weight_gradient, position_gradient, None, None


@triton.jit
def _embed(ids, positions, weight, position, seed, x, D, scale, p, BLOCK: tl.constexpr, DROPS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK)
    x_D = tl.load(weight + tl.load(ids + row) * D + d, mask=d < D, other=0.0).to(tl.float32) * scale
    x_D += tl.load(position + tl.load(positions + row) * D + d, mask=d < D, other=0.0).to(tl.float32)
    if DROPS:
        x_D = tl.where(kept(seed, row * D + d, p), x_D / (1 - p), 0.0)
    tl.store(x + row * D + d, x_D.to(x.dtype.element_ty), mask=d < D)


@triton.jit
def _keep(gradient, kept_gradient, seed, D, p, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK)
    gradient_D = tl.load(gradient + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    gradient_D = tl.where(kept(seed, row * D + d, p), gradient_D / (1 - p), 0.0)
    tl.store(kept_gradient + row * D + d, gradient_D.to(gradient.dtype.element_ty), mask=d < D)
