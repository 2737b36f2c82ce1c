"""Queries and keys normed and turned in one pass: the twin of `attention.normed_and_turned`."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from qkv.layers.attention import normed_and_turned as plain
from qkv.layers.gpu.layout import row_major
from qkv.layers.gpu.norms import is_rms_norm
from qkv.layers.positions import LONGEST_WAVE, Rotary, Still, Turn

_POSITIONS = 32
"""Positions whose heads a program goes through, one after the other, with the same angles."""


def normed_and_turned(x_RHWE: Tensor, positions_RW: Tensor, norm: nn.Module, turn: Turn) -> Tensor:
    """turn(norm(x)) by position; other norms and turns than these, and heads whose width is no power of two, go the
    plain way."""
    normed, turned = is_rms_norm(norm), type(turn) is Rotary
    known = (normed or type(norm) is nn.Identity) and (turned or type(turn) is Still)
    # Where nothing is to be done, the plain way does nothing too.
    if not known or not (normed or turned) or x_RHWE.size(-1).bit_count() != 1 or x_RHWE.size(-1) == 1:
        return plain(x_RHWE, positions_RW, norm, turn)
    gain_E = norm.weight if normed else None
    epsilon = norm.eps if normed else 0.0
    y_RHWE: Tensor = _NormedAndTurned.apply(x_RHWE, positions_RW, gain_E, epsilon, turned)  # type: ignore[no-untyped-call]
    return y_RHWE


class _NormedAndTurned(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_RHWE: Tensor, positions_RW: Tensor, gain_E: Tensor | None, epsilon: float, turned: bool
    ) -> Tensor:
        x_RHWE, positions_RW = row_major(x_RHWE), positions_RW.contiguous()
        R, H, W, E = x_RHWE.shape
        y_RHWE = x_RHWE.new_empty(R, W, H, E).transpose(1, 2)
        _turn[(R, triton.cdiv(W, _POSITIONS))](
            x_RHWE, positions_RW, gain_E, y_RHWE, *x_RHWE.stride()[:3], *y_RHWE.stride()[:3], W, epsilon,
            **_choices(gain_E, turned, H, E),
        )  # fmt: skip
        ctx.save_for_backward(x_RHWE, positions_RW, gain_E)
        ctx.epsilon, ctx.turned = epsilon, turned
        return y_RHWE

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x_RHWE, positions_RW, gain_E = ctx.saved_tensors
        R, H, W, E = x_RHWE.shape
        gradient_RHWE = row_major(gradients[0])
        x_gradient_RHWE = x_RHWE.new_empty(R, W, H, E).transpose(1, 2)
        blocks = triton.cdiv(W, _POSITIONS)
        gain_gradients = torch.empty(R * blocks, E, device=x_RHWE.device) if gain_E is not None else None
        _turn_back[(R, blocks)](
            gradient_RHWE, x_RHWE, positions_RW, gain_E, x_gradient_RHWE, gain_gradients,
            *gradient_RHWE.stride()[:3], *x_RHWE.stride()[:3], *x_gradient_RHWE.stride()[:3], W, ctx.epsilon,
            **_choices(gain_E, ctx.turned, H, E),
        )  # fmt: skip
        gain_gradient = None if gain_gradients is None else gain_gradients.sum(0).to(gain_E.dtype)
        return x_gradient_RHWE, None, gain_gradient, None, None


def _choices(gain_E: Tensor | None, turned: bool, H: int, E: int) -> dict[str, Any]:
    return {
        "POSITIONS": _POSITIONS,
        "H": H,
        "E": E,
        "NORMED": gain_E is not None,
        "TURNED": turned,
        "STEP": -math.log(LONGEST_WAVE) / E,
    }


@triton.jit
def _angles(positions, w, W, E: tl.constexpr, STEP: tl.constexpr):
    """Cosine and sine for each position and pair of dimensions."""
    position_W = tl.load(positions + w, mask=w < W, other=0).to(tl.float32)
    pair = (2 * tl.arange(0, E // 2)).to(tl.float32)
    angle_WE = position_W[:, None] * tl.exp(pair * STEP)[None, :]
    return tl.cos(angle_WE), tl.sin(angle_WE)


@triton.jit
def _pairs(start, stride, w, W, POSITIONS: tl.constexpr, E: tl.constexpr):
    """The even and the odd numbers of a head's vectors."""
    at = start + w[:, None] * stride + tl.arange(0, E)[None, :]
    x_WE = tl.load(at, mask=(w < W)[:, None], other=0.0).to(tl.float32)
    return tl.split(tl.reshape(x_WE, (POSITIONS, E // 2, 2)))


@triton.jit
def _put(start, stride, w, W, even, odd, POSITIONS: tl.constexpr, E: tl.constexpr):
    x_WE = tl.reshape(tl.join(even, odd), (POSITIONS, E)).to(start.dtype.element_ty)
    tl.store(start + w[:, None] * stride + tl.arange(0, E)[None, :], x_WE, mask=(w < W)[:, None])


@triton.jit
def _turn(
    x, positions, gain, y, x_r, x_h, x_w, y_r, y_h, y_w, W, epsilon,
    POSITIONS: tl.constexpr, H: tl.constexpr, E: tl.constexpr,
    NORMED: tl.constexpr, TURNED: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64)
    w = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    pair = 2 * tl.arange(0, E // 2)[None, :]
    if TURNED:
        cosine, sine = _angles(positions + r * W, w, W, E, STEP)
    for h in range(H):
        even, odd = _pairs(x + r * x_r + h * x_h, x_w, w, W, POSITIONS, E)
        if NORMED:
            scale_W = 1 / tl.sqrt((tl.sum(even * even, 1) + tl.sum(odd * odd, 1)) / E + epsilon)
            even = even * scale_W[:, None] * tl.load(gain + pair).to(tl.float32)
            odd = odd * scale_W[:, None] * tl.load(gain + pair + 1).to(tl.float32)
        if TURNED:
            even, odd = even * cosine - odd * sine, odd * cosine + even * sine
        _put(y + r * y_r + h * y_h, y_w, w, W, even, odd, POSITIONS, E)


@triton.jit
def _turn_back(
    gradient, x, positions, gain, x_gradient, gain_gradients,
    g_r, g_h, g_w, x_r, x_h, x_w, dx_r, dx_h, dx_w, W, epsilon,
    POSITIONS: tl.constexpr, H: tl.constexpr, E: tl.constexpr,
    NORMED: tl.constexpr, TURNED: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64)
    w = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    pair = 2 * tl.arange(0, E // 2)[None, :]
    if TURNED:
        cosine, sine = _angles(positions + r * W, w, W, E, STEP)
    even_gain = tl.zeros([POSITIONS, E // 2], dtype=tl.float32)
    odd_gain = tl.zeros([POSITIONS, E // 2], dtype=tl.float32)
    for h in range(H):
        even, odd = _pairs(gradient + r * g_r + h * g_h, g_w, w, W, POSITIONS, E)
        if TURNED:
            even, odd = even * cosine + odd * sine, odd * cosine - even * sine
        if NORMED:
            even_unit, odd_unit = _pairs(x + r * x_r + h * x_h, x_w, w, W, POSITIONS, E)
            square_W = tl.sum(even_unit * even_unit, 1) + tl.sum(odd_unit * odd_unit, 1)
            scale_W1 = (1 / tl.sqrt(square_W / E + epsilon))[:, None]
            even_unit, odd_unit = even_unit * scale_W1, odd_unit * scale_W1
            even_gain += even * even_unit
            odd_gain += odd * odd_unit
            even *= tl.load(gain + pair).to(tl.float32)
            odd *= tl.load(gain + pair + 1).to(tl.float32)
            along_W1 = ((tl.sum(even * even_unit, 1) + tl.sum(odd * odd_unit, 1)) / E)[:, None]
            even, odd = (even - even_unit * along_W1) * scale_W1, (odd - odd_unit * along_W1) * scale_W1
        _put(x_gradient + r * dx_r + h * dx_h, dx_w, w, W, even, odd, POSITIONS, E)
    if NORMED:
        at = gain_gradients + (r * tl.num_programs(1) + tl.program_id(1)) * E + 2 * tl.arange(0, E // 2)
        tl.store(at, tl.sum(even_gain, 0))
        tl.store(at + 1, tl.sum(odd_gain, 0))
