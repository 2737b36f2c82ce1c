"""Feed-forward layers (section 3.3): what stands between their products in one pass, or inside a product."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from qkv.layers.gpu.layout import in_pieces

_ROWS = 64
"""Positions of the hidden layer that one program of the backward pass goes through."""
_AT_ONCE = 8
_BLOCK = 512


def relu_network(x_RWD: Tensor, widen: nn.Linear, narrow: nn.Linear) -> Tensor:
    """max(0, xW₁ + b₁)W₂ + b₂; the twin of `feed_forward.relu_network`."""
    y_RWD: Tensor = _ReluNetwork.apply(x_RWD, widen.weight, widen.bias, narrow.weight, narrow.bias)  # type: ignore[no-untyped-call]
    return y_RWD


def gated_network(x_RWD: Tensor, gate: nn.Linear, widen: nn.Linear, narrow: nn.Linear) -> Tensor:
    """(silu(xW₁) * xW₂)W₃; the twin of `feed_forward.gated_network`."""
    y_RWD: Tensor = _GatedNetwork.apply(x_RWD, gate.weight, widen.weight, narrow.weight)  # type: ignore[no-untyped-call]
    return y_RWD


class _ReluNetwork(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_RWD: Tensor, widen_FD: Tensor, widen_F: Tensor, narrow_DF: Tensor, narrow_D: Tensor
    ) -> Tensor:
        x_PD = x_RWD.flatten(0, -2)
        hidden_PF = torch._addmm_activation(widen_F, x_PD, widen_FD.T)
        ctx.save_for_backward(x_PD, hidden_PF, widen_FD, narrow_DF)
        return torch.addmm(narrow_D, hidden_PF, narrow_DF.T).view(x_RWD.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x_PD, hidden_PF, widen_FD, narrow_DF = ctx.saved_tensors
        gradient_PD = gradients[0].flatten(0, -2)
        hidden_gradient_PF = gradient_PD @ narrow_DF
        widen_gradient_F = cut_off(hidden_gradient_PF, hidden_PF)
        return (
            (hidden_gradient_PF @ widen_FD).view(gradients[0].shape),
            hidden_gradient_PF.T @ x_PD,
            widen_gradient_F,
            gradient_PD.T @ hidden_PF,
            gradient_PD.sum(0),
        )


def cut_off(gradient_PF: Tensor, hidden_PF: Tensor) -> Tensor:
    """Sets the gradient, in place, to zero where nothing came through, and returns its sum over the positions."""
    P, F = gradient_PF.shape
    parts = triton.cdiv(P, _ROWS)
    sums = torch.empty(parts, F, device=gradient_PF.device, dtype=torch.float32)
    block = min(_BLOCK, triton.next_power_of_2(F))
    _cut_off[(parts, triton.cdiv(F, block))](
        gradient_PF, hidden_PF, sums, P, F, ROWS=_ROWS, AT_ONCE=_AT_ONCE, BLOCK=block
    )
    return sums.sum(0).to(gradient_PF.dtype)


@triton.jit
def _cut_off(gradient, hidden, sums, P, F, ROWS: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr):
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total_PF = tl.zeros([AT_ONCE, BLOCK], dtype=tl.float32)
    for number in range(0, ROWS, AT_ONCE):
        p = tl.program_id(0) * ROWS + number + tl.arange(0, AT_ONCE)
        at = p[:, None].to(tl.int64) * F + f[None, :]
        there = (p < P)[:, None] & (f < F)[None, :]
        came_PF = tl.load(hidden + at, mask=there, other=0.0) > 0
        gradient_PF = tl.load(gradient + at, mask=there, other=0.0)
        gradient_PF = tl.where(came_PF, gradient_PF, tl.zeros_like(gradient_PF))
        tl.store(gradient + at, gradient_PF, mask=there)
        total_PF += gradient_PF.to(tl.float32)
    tl.store(sums + tl.program_id(0) * F + f, tl.sum(total_PF, 0), mask=f < F)


class _GatedNetwork(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_RWD: Tensor, gate_FD: Tensor, widen_FD: Tensor, narrow_DF: Tensor) -> Tensor:
        x_PD = x_RWD.flatten(0, -2)
        # Both products in one: gates on the left, what they let through on the right.
        both_weights = torch.cat([gate_FD, widen_FD])
        both = x_PD @ both_weights.T
        hidden_PF = both.new_empty(both.size(0), gate_FD.size(0))
        _gate[_grid(hidden_PF)](both, hidden_PF, **_sizes(hidden_PF))
        ctx.save_for_backward(x_PD, both, hidden_PF, both_weights, narrow_DF)
        return (hidden_PF @ narrow_DF.T).view(x_RWD.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        x_PD, both, hidden_PF, both_weights, narrow_DF = ctx.saved_tensors
        gradient_PD = gradients[0].flatten(0, -2)
        hidden_gradient_PF = gradient_PD @ narrow_DF
        both_gradient = torch.empty_like(both)
        _gate_gradient[_grid(hidden_PF)](hidden_gradient_PF, both, both_gradient, **_sizes(hidden_PF))
        return (
            (both_gradient @ both_weights).view(gradients[0].shape),
            *(both_gradient.T @ x_PD).chunk(2),
            gradient_PD.T @ hidden_PF,
        )


def _grid(hidden_PF: Tensor) -> tuple[int, int]:
    return triton.cdiv(hidden_PF.size(0), _AT_ONCE), triton.cdiv(hidden_PF.size(1), _BLOCK)


def _sizes(hidden_PF: Tensor) -> dict[str, int]:
    P, F = hidden_PF.shape
    pieces, piece = in_pieces(F)
    return {"P": P, "pieces": pieces, "PIECE": piece, "ROWS": _AT_ONCE, "BLOCK": _BLOCK}


@triton.jit
def _places(P, F, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    return p, f, (p < P) & (f < F)


@triton.jit
def _gate(both, hidden, P, pieces, PIECE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    F = pieces * PIECE
    p, f, there = _places(P, F, ROWS, BLOCK)
    gate_PF = tl.load(both + p * 2 * F + f, mask=there, other=0.0).to(tl.float32)
    wide_PF = tl.load(both + p * 2 * F + F + f, mask=there, other=0.0).to(tl.float32)
    hidden_PF = gate_PF * tl.sigmoid(gate_PF) * wide_PF
    tl.store(hidden + p * F + f, hidden_PF.to(hidden.dtype.element_ty), mask=there)


@triton.jit
def _gate_gradient(
    gradient, both, both_gradient, P, pieces, PIECE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    F = pieces * PIECE
    p, f, there = _places(P, F, ROWS, BLOCK)
    gradient_PF = tl.load(gradient + p * F + f, mask=there, other=0.0).to(tl.float32)
    gate_PF = tl.load(both + p * 2 * F + f, mask=there, other=0.0).to(tl.float32)
    wide_PF = tl.load(both + p * 2 * F + F + f, mask=there, other=0.0).to(tl.float32)
    open_PF = tl.sigmoid(gate_PF)
    gate_gradient_PF = gradient_PF * wide_PF * open_PF * (1 + gate_PF * (1 - open_PF))
    wide_gradient_PF = gradient_PF * gate_PF * open_PF
    at = both_gradient + p * 2 * F + f
    tl.store(at, gate_gradient_PF.to(both_gradient.dtype.element_ty), mask=there)
    tl.store(at + F, wide_gradient_PF.to(both_gradient.dtype.element_ty), mask=there)
