"""Attention in a search that keeps a tree, the twin of `layers.branches`: only what is there is read, and no mask is.

A program looks for the hypotheses of a sentence with one head, so that keys and values are read once for all of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from qkv.layers.branches import Slots

BLOCK = 32
"""Slots that are looked at in one go."""
WARPS = 2
STAGES = 2
ROWS = 16
"""Hypotheses of a sentence that one program looks for: a product of the tensor cores is at least so wide."""


def look_back(
    query_NBHE: Tensor, key_NBHE: Tensor, value_NBHU: Tensor, past: Slots, lane_NBT: Tensor, written_N: Tensor
) -> Tensor:
    """The twin of `branches.look_back`."""
    N, B, H, _ = query_NBHE.shape
    mixed_NBHU = query_NBHE.new_empty(N, B, H, value_NBHU.size(3))
    _look_back[(N, H, triton.cdiv(B, ROWS))](
        query_NBHE, key_NBHE, value_NBHU, *past, lane_NBT, written_N, mixed_NBHU,
        *query_NBHE.stride()[:3], *key_NBHE.stride()[:3], *value_NBHU.stride()[:3],
        *past.key_NSHE.stride()[:3], *past.value_NSHU.stride()[:3],
        H, lane_NBT.size(2), **_sizes(query_NBHE, value_NBHU), B=B,
    )  # fmt: skip
    return mixed_NBHU


def look_across(query_NBHE: Tensor, memory: Slots, length_N: Tensor) -> Tensor:
    """The twin of `branches.look_across`."""
    N, B, H, _ = query_NBHE.shape
    mixed_NBHU = query_NBHE.new_empty(N, B, H, memory.value_NSHU.size(3))
    _look_across[(N, H, triton.cdiv(B, ROWS))](
        query_NBHE, *memory, length_N, mixed_NBHU,
        *query_NBHE.stride()[:3], *memory.key_NSHE.stride()[:3], *memory.value_NSHU.stride()[:3],
        H, **_sizes(query_NBHE, memory.value_NSHU), B=B,
    )  # fmt: skip
    return mixed_NBHU


def _sizes(query_NBHE: Tensor, value_NBHU: Tensor) -> dict[str, Any]:
    E, U = query_NBHE.size(3), value_NBHU.size(3)
    return {
        "scale": 1.4426950408889634 / math.sqrt(E),  # Powers of two are quicker than those of e.
        "E": E,
        "U": U,
        "WIDE_E": max(16, triton.next_power_of_2(E)),
        "WIDE_U": max(16, triton.next_power_of_2(U)),
        # Three products in tf32 are as exact as one in float32, and several times as quick.
        "EXACT": "tf32x3" if query_NBHE.dtype == torch.float32 else "tf32",
        "ROWS": ROWS,
        "BLOCK": BLOCK,
        "num_warps": WARPS,
        "num_stages": STAGES,
    }


@triton.jit
def _tile(start, stride, row, there, WIDTH: tl.constexpr, WIDE: tl.constexpr):
    """These rows of one head's vectors, with zeros where nothing is."""
    column = tl.arange(0, WIDE)[None, :]
    return tl.load(start + row[:, None] * stride + column, mask=there[:, None] & (column < WIDTH), other=0.0)


@triton.jit
def _put(start, stride, row, there, value, WIDTH: tl.constexpr, WIDE: tl.constexpr):
    column = tl.arange(0, WIDE)[None, :]
    at = start + row[:, None] * stride + column
    tl.store(at, value.to(start.dtype.element_ty), mask=there[:, None] & (column < WIDTH))


@triton.jit
def _mixed_in(top_B, sum_B, mixed_BU, score_BS, value_SU, EXACT: tl.constexpr):
    """A softmax that goes on: the highest score so far, and sum and mixture of the weights relative to it."""
    new_top_B = tl.maximum(top_B, tl.max(score_BS, 1))
    shrink_B = tl.exp2(top_B - new_top_B)
    weight_BS = tl.exp2(score_BS - new_top_B[:, None])
    sum_B = sum_B * shrink_B + tl.sum(weight_BS, 1)
    mixed_BU = mixed_BU * shrink_B[:, None] + tl.dot(weight_BS.to(value_SU.dtype), value_SU, input_precision=EXACT)
    return new_top_B, sum_B, mixed_BU


@triton.jit
def _look_back(
    query, key, value, past_key, past_value, lane, written, mixed,
    query_n, query_b, query_h, key_n, key_b, key_h, value_n, value_b, value_h,
    past_key_n, past_key_s, past_key_h, past_value_n, past_value_s, past_value_h,
    H, T, scale,
    E: tl.constexpr, U: tl.constexpr, WIDE_E: tl.constexpr, WIDE_U: tl.constexpr, EXACT: tl.constexpr,
    B: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
    b = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    there_B = b < B
    query_BE = _tile(query + n * query_n + h * query_h, query_b, b, there_B, E, WIDE_E)
    key_BE = _tile(key + n * key_n + h * key_h, key_b, b, there_B, E, WIDE_E)
    value_BU = _tile(value + n * value_n + h * value_h, value_b, b, there_B, U, WIDE_U)
    past_key += n * past_key_n + h * past_key_h
    past_value += n * past_value_n + h * past_value_h
    before = tl.load(written + n).to(tl.int32) * B
    _put(past_key, past_key_s, before + b, there_B, key_BE, E, WIDE_E)
    _put(past_value, past_value_s, before + b, there_B, value_BU, U, WIDE_U)

    # At the present position everybody sees itself and nobody else.
    top_B = tl.sum(query_BE.to(tl.float32) * key_BE.to(tl.float32), 1) * scale
    sum_B = tl.full([ROWS], 1.0, dtype=tl.float32)
    mixed_BU = value_BU.to(tl.float32)
    for first in range(0, before, BLOCK):
        s = first + tl.arange(0, BLOCK)
        there_S = s < before
        at = lane + (n * B + b)[:, None] * T + (s // B)[None, :]
        own_BS = tl.load(at, mask=there_B[:, None] & there_S[None, :], other=-1) == (s % B)[None, :]
        # Few branches are still followed: what nobody looks back at is not read.
        seen_S = tl.max(own_BS.to(tl.int32), 0) > 0
        key_SE = _tile(past_key, past_key_s, s, seen_S, E, WIDE_E)
        value_SU = _tile(past_value, past_value_s, s, seen_S, U, WIDE_U)
        score_BS = tl.dot(query_BE, tl.trans(key_SE), input_precision=EXACT) * scale
        score_BS = tl.where(own_BS, score_BS, -float("inf"))
        top_B, sum_B, mixed_BU = _mixed_in(top_B, sum_B, mixed_BU, score_BS, value_SU, EXACT)
    _put(mixed + (n * B * H + h) * U, H * U, b, there_B, mixed_BU / sum_B[:, None], U, WIDE_U)


@triton.jit
def _look_across(
    query, memory_key, memory_value, length, mixed,
    query_n, query_b, query_h,
    memory_key_n, memory_key_s, memory_key_h, memory_value_n, memory_value_s, memory_value_h,
    H, scale,
    E: tl.constexpr, U: tl.constexpr, WIDE_E: tl.constexpr, WIDE_U: tl.constexpr, EXACT: tl.constexpr,
    B: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
    b = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    there_B = b < B
    query_BE = _tile(query + n * query_n + h * query_h, query_b, b, there_B, E, WIDE_E)
    memory_key += n * memory_key_n + h * memory_key_h
    memory_value += n * memory_value_n + h * memory_value_h
    positions = tl.load(length + n).to(tl.int32)
    top_B = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    sum_B = tl.zeros([ROWS], dtype=tl.float32)
    mixed_BU = tl.zeros([ROWS, WIDE_U], dtype=tl.float32)
    for first in range(0, positions, BLOCK):
        s = first + tl.arange(0, BLOCK)
        there_S = s < positions
        key_SE = _tile(memory_key, memory_key_s, s, there_S, E, WIDE_E)
        value_SU = _tile(memory_value, memory_value_s, s, there_S, U, WIDE_U)
        score_BS = tl.dot(query_BE, tl.trans(key_SE), input_precision=EXACT) * scale
        score_BS = tl.where(there_S[None, :], score_BS, -float("inf"))
        top_B, sum_B, mixed_BU = _mixed_in(top_B, sum_B, mixed_BU, score_BS, value_SU, EXACT)
    _put(mixed + (n * B * H + h) * U, H * U, b, there_B, mixed_BU / sum_B[:, None], U, WIDE_U)
