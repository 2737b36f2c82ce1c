"""Loss and gradient of one chunk's logits in one kernel: the twin of `loss.loss_and_gradient`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from qkv.layers.gpu.layout import in_pieces
from qkv.layers.loss import GPU_POSITIONS, IGNORED, Chunks

BLOCK = 4096
WARPS = 8


def loss_and_gradient(logits_PV: Tensor, label_P: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Both sums, and the gradient of the first, written over the logits."""
    P, V = logits_PV.shape
    total_P, surprise_P = (torch.empty(P, device=logits_PV.device, dtype=torch.float32) for _ in range(2))
    pieces, piece = in_pieces(V)
    _loss_and_gradient[(P,)](
        logits_PV, label_P, total_P, surprise_P, logits_PV.stride(0), pieces, smoothing,
        PIECE=piece, PASSED_OVER=IGNORED, BLOCK=min(BLOCK, triton.next_power_of_2(V)), num_warps=WARPS,
    )  # fmt: skip
    return total_P.sum(), surprise_P.sum(), logits_PV


def loss_and_gradient_of_two_readings(
    logits_PV: Tensor, label_P: Tensor, smoothing: float, agreement: float, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The same of rows that were read twice: the twin of `loss.loss_and_gradient_of_two_readings`."""
    P, V = logits_PV.shape
    total_P, surprise_P = (torch.empty(P // 2, device=logits_PV.device, dtype=torch.float32) for _ in range(2))
    pieces, piece = in_pieces(V)
    _loss_of_two_readings[(P // 2,)](
        logits_PV, label_P, total_P, surprise_P, logits_PV.stride(0), pieces, smoothing, agreement, width,
        PIECE=piece, PASSED_OVER=IGNORED, BLOCK=min(BLOCK, triton.next_power_of_2(V)), num_warps=WARPS,
    )  # fmt: skip
    return total_P.sum(), surprise_P.sum(), logits_PV


CHUNKS = Chunks(GPU_POSITIONS, loss_and_gradient, loss_and_gradient_of_two_readings)


@triton.jit
def _loss_and_gradient(
    logits, label, total, surprise, stride, pieces, smoothing,
    PIECE: tl.constexpr, PASSED_OVER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    V = pieces * PIECE
    p = tl.program_id(0).to(tl.int64)
    own = tl.load(label + p)
    start = logits + p * stride
    if own == PASSED_OVER:
        for first in range(0, V, BLOCK):
            v = first + tl.arange(0, BLOCK)
            tl.store(start + v, tl.zeros([BLOCK], dtype=tl.float32).to(logits.dtype.element_ty), mask=v < V)
        tl.store(total + p, 0.0)
        tl.store(surprise + p, 0.0)
    else:
        own_logit = tl.load(start + own).to(tl.float32)
        everything, mean = _everything(start, V, BLOCK)
        tl.store(surprise + p, everything - own_logit)
        even = everything - mean
        tl.store(total + p, (1 - smoothing) * (everything - own_logit) + smoothing * even)
        for first in range(0, V, BLOCK):
            v = first + tl.arange(0, BLOCK)
            logit_V = tl.load(start + v, mask=v < V, other=0.0).to(tl.float32)
            gradient_V = tl.exp(logit_V - everything) - smoothing / V - tl.where(v == own, 1 - smoothing, 0.0)
            tl.store(start + v, gradient_V.to(logits.dtype.element_ty), mask=v < V)


@triton.jit
def _loss_of_two_readings(
    logits, label, total, surprise, stride, pieces, smoothing, agreement, width,
    PIECE: tl.constexpr, PASSED_OVER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    V = pieces * PIECE
    p = tl.program_id(0).to(tl.int64)
    place = p // width * 2 * width + p % width
    own = tl.load(label + place)
    first, second = logits + place * stride, logits + (place + width) * stride
    if own == PASSED_OVER:
        for begin in range(0, V, BLOCK):
            v = begin + tl.arange(0, BLOCK)
            nothing_V = tl.zeros([BLOCK], dtype=tl.float32).to(logits.dtype.element_ty)
            tl.store(first + v, nothing_V, mask=v < V)
            tl.store(second + v, nothing_V, mask=v < V)
        tl.store(total + p, 0.0)
        tl.store(surprise + p, 0.0)
    else:
        own_logits = tl.load(first + own).to(tl.float32) + tl.load(second + own).to(tl.float32)
        one_all, one_mean = _everything(first, V, BLOCK)
        other_all, other_mean = _everything(second, V, BLOCK)
        # How far the logits are apart on average, by the probabilities of each reading.
        one_apart_V = tl.zeros([BLOCK], dtype=tl.float32)
        other_apart_V = tl.zeros([BLOCK], dtype=tl.float32)
        for begin in range(0, V, BLOCK):
            v = begin + tl.arange(0, BLOCK)
            one_V = tl.load(first + v, mask=v < V, other=-float("inf")).to(tl.float32)
            other_V = tl.load(second + v, mask=v < V, other=-float("inf")).to(tl.float32)
            apart_V = tl.where(v < V, one_V - other_V, 0.0)
            one_apart_V += tl.exp(one_V - one_all) * apart_V
            other_apart_V += tl.exp(other_V - other_all) * apart_V
        there = tl.sum(one_apart_V, 0) - (one_all - other_all)
        back = (one_all - other_all) - tl.sum(other_apart_V, 0)
        own_surprise = (one_all + other_all - own_logits) / 2
        even = (one_all + other_all - one_mean - other_mean) / 2
        tl.store(surprise + p, own_surprise)
        tl.store(total + p, (1 - smoothing) * own_surprise + smoothing * even + agreement / 4 * (there + back))
        for begin in range(0, V, BLOCK):
            v = begin + tl.arange(0, BLOCK)
            one_V = tl.load(first + v, mask=v < V, other=0.0).to(tl.float32) - one_all
            other_V = tl.load(second + v, mask=v < V, other=0.0).to(tl.float32) - other_all
            p_V, q_V = tl.exp(one_V), tl.exp(other_V)
            wanted_V = smoothing / V + tl.where(v == own, 1 - smoothing, 0.0)
            one_gradient_V = (p_V - wanted_V) / 2 + agreement / 4 * (p_V * (one_V - other_V - there + 1) - q_V)
            other_gradient_V = (q_V - wanted_V) / 2 + agreement / 4 * (q_V * (other_V - one_V - back + 1) - p_V)
            tl.store(first + v, one_gradient_V.to(logits.dtype.element_ty), mask=v < V)
            tl.store(second + v, other_gradient_V.to(logits.dtype.element_ty), mask=v < V)


@triton.jit
def _everything(start, V, BLOCK: tl.constexpr):
    """The logarithm of the sum of all exponentials of a position's logits, and their mean."""
    highest = -float("inf")
    sum_V = tl.zeros([BLOCK], dtype=tl.float32)
    plain_V = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, V, BLOCK):
        v = first + tl.arange(0, BLOCK)
        logit_V = tl.load(start + v, mask=v < V, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(logit_V, 0))
        sum_V = sum_V * tl.exp(highest - higher) + tl.exp(logit_V - higher)
        plain_V += tl.where(v < V, logit_V, 0.0)
        highest = higher
    return highest + tl.log(tl.sum(sum_V, 0)), tl.sum(plain_V, 0) / V
