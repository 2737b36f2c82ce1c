"""x + dropout(y) and its norm in one pass over the numbers, and one for their gradients (sections 3.1 and 5.4)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from qkv.layers import residual as plain
from qkv.layers.dropout import Dropout
from qkv.layers.gpu.norms import is_layer_norm, is_rms_norm
from qkv.layers.gpu.random import kept

FORWARD = {"ROWS": 4, "num_warps": 4}
BACKWARD = {"ROWS": 4, "num_warps": 4}
"""ROWS: positions that a program works on at a time."""
PROGRAMS = 1024
"""Of the backward pass: each sums its share of the gradients of gain and shift."""


def sum_and_norm(x_RWD: Tensor, y_RWD: Tensor, norm: nn.Module, dropout: Dropout) -> tuple[Tensor, Tensor]:
    """x + dropout(y), and the norm of that; the twin of `residual.sum_and_norm`, which does norms not known here."""
    if not _knows(norm):
        return plain.sum_and_norm(x_RWD, y_RWD, norm, dropout)
    total, normed, _ = _apply(x_RWD, y_RWD, norm, dropout)
    return total, normed


def norm_of_sum(x_RWD: Tensor, y_RWD: Tensor, norm: nn.Module, dropout: Dropout) -> tuple[Tensor, Tensor]:
    """norm(x + dropout(y)) twice, for two that use it: what they say of it meets in this kernel and not before.

    The twin of `residual.norm_of_sum`, which does norms not known here.
    """
    if not _knows(norm):
        return plain.norm_of_sum(x_RWD, y_RWD, norm, dropout)
    _, normed, again = _apply(x_RWD, y_RWD, norm, dropout)
    return normed, again


def _knows(norm: nn.Module) -> bool:
    return is_layer_norm(norm) or is_rms_norm(norm)


def _apply(x_RWD: Tensor, y_RWD: Tensor, norm: nn.Module, dropout: Dropout) -> tuple[Tensor, Tensor, Tensor]:
    # Who drops nothing draws nothing.
    seed = torch.empty((), dtype=torch.int64, device=x_RWD.device).random_() if dropout.now > 0 else None
    shift_D = norm.bias if is_layer_norm(norm) else None
    three: tuple[Tensor, Tensor, Tensor] = _AddAndNorm.apply(  # type: ignore[no-untyped-call]
        x_RWD, y_RWD, norm.weight, shift_D, seed, norm.eps, dropout.now
    )
    return three


class _AddAndNorm(torch.autograd.Function):
    """Norms with a shift are layer norms; without one they are RMS norms, which take no mean."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        gain_D: Tensor,
        shift_D: Tensor | None,
        seed: Tensor | None,
        epsilon: float,
        p: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        x, y = x.contiguous(), y.contiguous()
        D = x.size(-1)
        P = x.numel() // D
        total, normed = torch.empty_like(x), torch.empty_like(x)
        mean_P, scale_P = (torch.empty(P, device=x.device, dtype=torch.float32) for _ in range(2))
        _add_and_norm[(triton.cdiv(P, FORWARD["ROWS"]),)](
            x, y, gain_D, shift_D, seed, total, normed, mean_P, scale_P, P, D, epsilon, p,
            BLOCK=triton.next_power_of_2(D), CENTRED=shift_D is not None, DROPS=p > 0, **FORWARD,
        )  # fmt: skip
        ctx.save_for_backward(total, gain_D, seed, mean_P, scale_P)
        ctx.centred, ctx.p = shift_D is not None, p
        return total, normed, normed.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        total, gain_D, seed, mean_P, scale_P = ctx.saved_tensors
        given = [None if gradient is None else gradient.contiguous() for gradient in gradients]
        D = total.size(-1)
        P = total.numel() // D
        x_gradient = torch.empty_like(total)
        y_gradient = torch.empty_like(total) if ctx.p > 0 else x_gradient
        programs = min(PROGRAMS, triton.cdiv(P, BACKWARD["ROWS"]))
        sums = torch.empty(2, programs, D, device=total.device, dtype=torch.float32)
        _add_and_norm_gradients[(programs,)](
            *given, total, gain_D, seed, mean_P, scale_P, x_gradient, y_gradient, sums[0], sums[1], P, D, ctx.p,
            BLOCK=triton.next_power_of_2(D), CENTRED=ctx.centred, DROPS=ctx.p > 0, **BACKWARD,
        )  # fmt: skip
        gain_gradient, shift_gradient = sums.sum(1).to(gain_D.dtype)
        return x_gradient, y_gradient, gain_gradient, shift_gradient if ctx.centred else None, None, None, None


@triton.jit
def _add_and_norm(
    x, y, gain, shift, seed, total, normed, mean, scale, P, D, epsilon, p,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * D + d[None, :]
    there = (row < P)[:, None] & (d < D)[None, :]
    y_PD = tl.load(y + at, mask=there, other=0.0).to(tl.float32)
    if DROPS:
        y_PD = tl.where(kept(seed, at, p), y_PD / (1 - p), 0.0)
    # What is kept for the backward pass is what was normed, rounding included.
    total_PD = (tl.load(x + at, mask=there, other=0.0).to(tl.float32) + y_PD).to(total.dtype.element_ty)
    tl.store(total + at, total_PD, mask=there)
    away_PD = total_PD.to(tl.float32)
    if CENTRED:
        mean_P = tl.sum(away_PD, 1) / D
        tl.store(mean + row, mean_P, mask=row < P)
        away_PD = tl.where(there, away_PD - mean_P[:, None], 0.0)
    scale_P = 1 / tl.sqrt(tl.sum(away_PD * away_PD, 1) / D + epsilon)
    tl.store(scale + row, scale_P, mask=row < P)
    normed_PD = away_PD * scale_P[:, None] * tl.load(gain + d, mask=d < D, other=0.0).to(tl.float32)[None, :]
    if CENTRED:
        normed_PD += tl.load(shift + d, mask=d < D, other=0.0).to(tl.float32)[None, :]
    tl.store(normed + at, normed_PD.to(normed.dtype.element_ty), mask=there)


@triton.jit
def _add_and_norm_gradients(
    total_gradient, gradient, other_gradient, total, gain, seed, mean, scale,
    x_gradient, y_gradient, gain_gradients, shift_gradients, P, D, p,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """The three gradients given are those of the sum, of its norm, and of the norm's second use; some may be none."""
    d = tl.arange(0, BLOCK)
    gain_D = tl.load(gain + d, mask=d < D, other=0.0).to(tl.float32)
    gain_gradient_PD = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    shift_gradient_PD = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for first in range(tl.program_id(0) * ROWS, P, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        at = row[:, None].to(tl.int64) * D + d[None, :]
        there = (row < P)[:, None] & (d < D)[None, :]
        gradient_PD = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
        if gradient is not None:
            gradient_PD += tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        if other_gradient is not None:
            gradient_PD += tl.load(other_gradient + at, mask=there, other=0.0).to(tl.float32)
        unit_PD = tl.load(total + at, mask=there, other=0.0).to(tl.float32)
        scale_P = tl.load(scale + row, mask=row < P, other=0.0)
        if CENTRED:
            unit_PD -= tl.load(mean + row, mask=row < P, other=0.0)[:, None]
        unit_PD = tl.where(there, unit_PD * scale_P[:, None], 0.0)
        gain_gradient_PD += gradient_PD * unit_PD
        shift_gradient_PD += gradient_PD
        gradient_PD *= gain_D[None, :]
        inner_PD = gradient_PD - unit_PD * (tl.sum(gradient_PD * unit_PD, 1) / D)[:, None]
        if CENTRED:
            inner_PD -= (tl.sum(gradient_PD, 1) / D)[:, None]
        inner_PD *= scale_P[:, None]
        if total_gradient is not None:
            inner_PD += tl.load(total_gradient + at, mask=there, other=0.0).to(tl.float32)
        tl.store(x_gradient + at, inner_PD.to(x_gradient.dtype.element_ty), mask=there)
        if DROPS:
            inner_PD = tl.where(kept(seed, at, p), inner_PD / (1 - p), 0.0)
            tl.store(y_gradient + at, inner_PD.to(y_gradient.dtype.element_ty), mask=there)
    at = tl.program_id(0) * D + d
    tl.store(gain_gradients + at, tl.sum(gain_gradient_PD, 0), mask=d < D)
    if CENTRED:
        tl.store(shift_gradients + at, tl.sum(shift_gradient_PD, 0), mask=d < D)
