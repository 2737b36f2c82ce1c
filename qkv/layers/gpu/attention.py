"""Attention inside a row, the twin of `kernels.fused`: a row is one tile, and no score is ever written to memory.

A row of training is a few sentences wide: all its queries meet all its keys in the registers of one program, which can
make the softmax and all three gradients without a second pass. A program goes through some heads of a row, one after
the other, so that the next one's numbers are on their way while it works.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from qkv.layers.gpu.layout import empty_like_parts, row_major
from qkv.layers.kernels import fused
from qkv.layers.visibility import Sentences, Visible

WIDEST = 128
"""The most positions, and the widest head, that a tile holds."""
LARGEST_EXACT = 128 * 128 * 16
"""The most pairs of numbers that a product of tiles multiplies in float32: without tensor cores each is an instruction,
and a compiler takes a minute for four times as many."""
WARPS = 8
STAGES = 3
"""Heads whose numbers are on their way at once; more were not faster on an H200."""
PROGRAMS = 512
"""At least so many, if the heads allow: enough for every processor of a large GPU to have a few."""


def tiled(query_RHWE: Tensor, key_RHKE: Tensor, value_RHKU: Tensor, visible: Visible | None) -> Tensor:
    """`kernels.fused` by tiles where a row and its heads fit one, and sentences say who sees whom; else by itself."""
    if not isinstance(visible, Sentences) or not _fits(query_RHWE, key_RHKE, value_RHKU):
        return fused(query_RHWE, key_RHKE, value_RHKU, visible)
    mixed_RHWU: Tensor = _Tiled.apply(  # type: ignore[no-untyped-call]
        query_RHWE, key_RHKE, value_RHKU, visible.looking_RW, visible.seen_RK, visible.later
    )
    return mixed_RHWU


def _fits(query_RHWE: Tensor, key_RHKE: Tensor, value_RHKU: Tensor) -> bool:
    (W, E), (K, U) = query_RHWE.shape[2:], value_RHKU.shape[2:]
    powers_of_two = all(size >= 16 and size & (size - 1) == 0 for size in (E, U))
    if not powers_of_two or max(W, K, E, U) > WIDEST:
        return False
    if query_RHWE.dtype == torch.float32 and _wide(W) * _wide(K) * max(E, U) > LARGEST_EXACT:
        return False
    return _stages(query_RHWE, key_RHKE, value_RHKU, value_RHKU) > 0


def _stages(*tiles_RHWE: Tensor) -> int:
    """How many heads' tiles a processor's own memory holds at once, beside one of scores."""
    first = tiles_RHWE[0]
    scores = WIDEST * WIDEST * first.element_size()
    of_a_head = sum(WIDEST * tile.size(3) * tile.element_size() for tile in tiles_RHWE)
    return min(STAGES, (_own_memory(first.device) - scores) // of_a_head)


@lru_cache
def _own_memory(device: torch.device) -> int:
    """Bytes that one processor of the GPU has for one program."""
    if device.type != "cuda":
        return 1 << 30
    return int(torch.cuda.get_device_properties(device).shared_memory_per_block_optin)  # type: ignore[attr-defined]


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query_RHWE: Tensor,
        key_RHKE: Tensor,
        value_RHKU: Tensor,
        looking_RW: Tensor,
        seen_RK: Tensor,
        later: bool,
    ) -> Tensor:
        query_RHWE, key_RHKE, value_RHKU = map(row_major, (query_RHWE, key_RHKE, value_RHKU))
        looking_RW, seen_RK = looking_RW.contiguous(), seen_RK.contiguous()
        R, H, W, _ = query_RHWE.shape
        # In memory the heads of a position lie side by side, as the output projection wants them.
        mixed_RHWU = query_RHWE.new_empty(R, W, H, value_RHKU.size(3)).transpose(1, 2)
        heads = _heads_a_program(R, H)
        _attend[(R, H // heads)](
            query_RHWE, key_RHKE, value_RHKU, looking_RW, seen_RK, mixed_RHWU,
            *_strides(query_RHWE, key_RHKE, value_RHKU, mixed_RHWU),
            **_sizes(query_RHWE, value_RHKU, later), HEADS=heads,
            num_warps=WARPS, num_stages=_stages(query_RHWE, key_RHKE, value_RHKU),
        )  # fmt: skip
        ctx.save_for_backward(query_RHWE, key_RHKE, value_RHKU, looking_RW, seen_RK)
        ctx.later = later
        return mixed_RHWU

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query_RHWE, key_RHKE, value_RHKU, looking_RW, seen_RK = ctx.saved_tensors
        gradient_RHWU = row_major(gradients[0])
        made = empty_like_parts((query_RHWE, key_RHKE, value_RHKU))
        R, H, _, _ = query_RHWE.shape
        heads = _heads_a_program(R, H)
        _attend_gradients[(R, H // heads)](
            query_RHWE, key_RHKE, value_RHKU, looking_RW, seen_RK, gradient_RHWU, *made,
            *_strides(query_RHWE, key_RHKE, value_RHKU, gradient_RHWU, *made),
            **_sizes(query_RHWE, value_RHKU, ctx.later), HEADS=heads,
            num_warps=WARPS, num_stages=_stages(query_RHWE, key_RHKE, value_RHKU, gradient_RHWU),
        )  # fmt: skip
        return *made, None, None, None


def _heads_a_program(R: int, H: int) -> int:
    heads = 1
    while H % (2 * heads) == 0 and R * H // (2 * heads) >= PROGRAMS:
        heads *= 2
    return heads


def _strides(*tensors_RHWE: Tensor) -> Iterator[int]:
    for tensor in tensors_RHWE:
        yield from tensor.stride()[:3]


def _sizes(query_RHWE: Tensor, value_RHKU: Tensor, later: bool) -> dict[str, Any]:
    (W, E), (K, U) = query_RHWE.shape[2:], value_RHKU.shape[2:]
    return {
        "scale": 1 / math.sqrt(E),
        "looking_count": W,
        "seen_count": K,
        "W": _wide(W),
        "K": _wide(K),
        "E": E,
        "U": U,
        "LATER": later,
        "EXACT": "ieee" if query_RHWE.dtype == torch.float32 else "tf32",
    }


def _wide(positions: int) -> int:
    """The tile that holds so many positions: a product of the tensor cores is at least 16 wide."""
    return int(max(16, triton.next_power_of_2(positions)))


@triton.jit
def _tile(start, position_stride, positions, COUNT: tl.constexpr, WIDTH: tl.constexpr):
    """One head's vectors at every position of a row."""
    position = tl.arange(0, COUNT)[:, None]
    at = start + position * position_stride + tl.arange(0, WIDTH)[None, :]
    return tl.load(at, mask=position < positions, other=0.0)


@triton.jit
def _put(start, position_stride, positions, value, COUNT: tl.constexpr, WIDTH: tl.constexpr):
    position = tl.arange(0, COUNT)[:, None]
    at = start + position * position_stride + tl.arange(0, WIDTH)[None, :]
    tl.store(at, value.to(start.dtype.element_ty), mask=position < positions)


@triton.jit
def _visible(looking, seen, looking_count, seen_count, W: tl.constexpr, K: tl.constexpr, LATER: tl.constexpr):
    """The keys of the same sentence, none of them later unless they may be."""
    w, k = tl.arange(0, W), tl.arange(0, K)
    looking_W = tl.load(looking + w, mask=w < looking_count, other=0)[:, None]
    seen_K = tl.load(seen + k, mask=k < seen_count, other=-1)[None, :]
    # Nobody's positions look everywhere, as `visibility.same_segment` has it; nobody looks past the row's end.
    visible_WK = ((looking_W == seen_K) | (looking_W == 0)) & (seen_K >= 0)
    if not LATER:
        visible_WK = visible_WK & (k[None, :] <= w[:, None])
    return visible_WK


@triton.jit
def _weights(query_WE, key_KE, visible_WK, scale, EXACT: tl.constexpr):
    """softmax(QKᵀ / √d_k) but for the division by the sums, and these."""
    # Powers of two are quicker than those of e.
    score_WK = tl.dot(query_WE, tl.trans(key_KE), input_precision=EXACT) * (scale * 1.4426950408889634)
    score_WK = tl.where(visible_WK, score_WK, -float("inf"))
    weight_WK = tl.exp2(score_WK - tl.max(score_WK, 1)[:, None])
    return weight_WK, tl.sum(weight_WK, 1)[:, None]


@triton.jit
def _attend(
    query, key, value, looking, seen, mixed,
    query_r, query_h, query_w, key_r, key_h, key_k, value_r, value_h, value_k, mixed_r, mixed_h, mixed_w,
    scale, looking_count, seen_count,
    W: tl.constexpr, K: tl.constexpr, E: tl.constexpr, U: tl.constexpr, LATER: tl.constexpr, EXACT: tl.constexpr,
    HEADS: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64)
    visible_WK = _visible(looking + r * looking_count, seen + r * seen_count, looking_count, seen_count, W, K, LATER)
    first = tl.program_id(1) * HEADS
    for h in range(first, first + HEADS):
        query_WE = _tile(query + r * query_r + h * query_h, query_w, looking_count, W, E)
        key_KE = _tile(key + r * key_r + h * key_h, key_k, seen_count, K, E)
        value_KU = _tile(value + r * value_r + h * value_h, value_k, seen_count, K, U)
        weight_WK, sum_W1 = _weights(query_WE, key_KE, visible_WK, scale, EXACT)
        mixed_WU = tl.dot(weight_WK.to(value_KU.dtype), value_KU, input_precision=EXACT) / sum_W1
        _put(mixed + r * mixed_r + h * mixed_h, mixed_w, looking_count, mixed_WU, W, U)


@triton.jit
def _attend_gradients(
    query, key, value, looking, seen, gradient, query_gradient, key_gradient, value_gradient,
    query_r, query_h, query_w, key_r, key_h, key_k, value_r, value_h, value_k, gradient_r, gradient_h, gradient_w,
    dq_r, dq_h, dq_w, dk_r, dk_h, dk_k, dv_r, dv_h, dv_k, scale, looking_count, seen_count,
    W: tl.constexpr, K: tl.constexpr, E: tl.constexpr, U: tl.constexpr, LATER: tl.constexpr, EXACT: tl.constexpr,
    HEADS: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64)
    visible_WK = _visible(looking + r * looking_count, seen + r * seen_count, looking_count, seen_count, W, K, LATER)
    first = tl.program_id(1) * HEADS
    for h in range(first, first + HEADS):
        query_WE = _tile(query + r * query_r + h * query_h, query_w, looking_count, W, E)
        key_KE = _tile(key + r * key_r + h * key_h, key_k, seen_count, K, E)
        value_KU = _tile(value + r * value_r + h * value_h, value_k, seen_count, K, U)
        gradient_WU = _tile(gradient + r * gradient_r + h * gradient_h, gradient_w, looking_count, W, U)
        weight_WK, sum_W1 = _weights(query_WE, key_KE, visible_WK, scale, EXACT)
        weight_WK /= sum_W1
        value_gradient_KU = tl.dot(tl.trans(weight_WK.to(gradient_WU.dtype)), gradient_WU, input_precision=EXACT)
        _put(value_gradient + r * dv_r + h * dv_h, dv_k, seen_count, value_gradient_KU, K, U)

        weight_gradient_WK = tl.dot(gradient_WU, tl.trans(value_KU), input_precision=EXACT)
        mean_W = tl.sum(weight_WK * weight_gradient_WK, 1)
        score_gradient_WK = (weight_WK * (weight_gradient_WK - mean_W[:, None]) * scale).to(query_WE.dtype)
        query_gradient_WE = tl.dot(score_gradient_WK, key_KE, input_precision=EXACT)
        _put(query_gradient + r * dq_r + h * dq_h, dq_w, looking_count, query_gradient_WE, W, E)
        key_gradient_KE = tl.dot(tl.trans(score_gradient_WK), query_WE, input_precision=EXACT)
        _put(key_gradient + r * dk_r + h * dk_h, dk_k, seen_count, key_gradient_KE, K, E)
