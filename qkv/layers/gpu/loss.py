"""Loss and gradient of one chunk's logits in one pass: the twin of `loss.loss_and_gradient`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from qkv.layers.loss import IGNORED, Chunks

BLOCK = 4096


def loss_and_gradient(logits_PV: Tensor, label_P: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Both sums, and the gradient of the first, written over the logits."""
    P, V = logits_PV.shape
    total_P, surprise_P = (torch.empty(P, device=logits_PV.device, dtype=torch.float32) for _ in range(2))
    _loss_and_gradient[(P,)](
        logits_PV, label_P, total_P, surprise_P, logits_PV.stride(0), V, smoothing,
        PASSED_OVER=IGNORED, BLOCK=min(BLOCK, triton.next_power_of_2(V)), num_warps=8,
    )  # fmt: skip
    return total_P.sum(), surprise_P.sum(), logits_PV


CHUNKS = Chunks(8192, loss_and_gradient)


@triton.jit
def _loss_and_gradient(
    logits, label, total, surprise, stride, V, smoothing, PASSED_OVER: tl.constexpr, BLOCK: tl.constexpr
):
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
        everything = highest + tl.log(tl.sum(sum_V, 0))
        tl.store(surprise + p, everything - own_logit)
        even = everything - tl.sum(plain_V, 0) / V
        tl.store(total + p, (1 - smoothing) * (everything - own_logit) + smoothing * even)
        for first in range(0, V, BLOCK):
            v = first + tl.arange(0, BLOCK)
            logit_V = tl.load(start + v, mask=v < V, other=0.0).to(tl.float32)
            gradient_V = tl.exp(logit_V - everything) - smoothing / V - tl.where(v == own, 1 - smoothing, 0.0)
            tl.store(start + v, gradient_V.to(logits.dtype.element_ty), mask=v < V)
