"""Cross-entropy with label smoothing (section 5.4) of the output layer, a chunk of positions at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

IGNORED = -100
"""The label of a position that nothing is asked of."""
_ALIGNED = 128


class Loss(NamedTuple):
    """Sums over the tokens counted, so that losses of parts can be added: divide only to print."""

    total: Tensor
    """What is made smaller: cross-entropy with smoothed labels."""
    surprise: Tensor
    """Cross-entropy with the true labels: the negative log-likelihood, in nats."""
    tokens: Tensor


class Chunks(NamedTuple):
    """A way to compute the loss a chunk of positions at a time."""

    positions: int
    """Those whose logits are in memory at once: enough to keep the device busy, few enough to stay small."""
    loss_and_gradient: Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor, Tensor]]
    """Of logits, labels and smoothing: both sums, and the gradient of the first by the logits, which may be where
    these were."""
    of_two_readings: Callable[[Tensor, Tensor, float, float, int], tuple[Tensor, Tensor, Tensor]]
    """The same where every row was read twice, given also the weight of their agreement and the width of a row."""


def smoothed_cross_entropy(
    x_PD: Tensor, weight_VD: Tensor, label_P: Tensor, *, smoothing: float, chunks: Chunks | None = None
) -> Loss:
    """The loss of the logits x·Wᵀ, which are never all in memory: each chunk's gradient is made along with its loss."""
    if not torch.is_grad_enabled():
        # Nobody else tells an autograd function that its gradients would be made in vain.
        x_PD, weight_VD = x_PD.detach(), weight_VD.detach()
    total, surprise = _ChunkedLoss.apply(x_PD, weight_VD, label_P, smoothing, chunks or CHUNKS)  # type: ignore[no-untyped-call]
    return Loss(total, surprise, (label_P != IGNORED).sum())


def agreeing_cross_entropy(
    x_PD: Tensor,
    weight_VD: Tensor,
    label_P: Tensor,
    *,
    smoothing: float,
    agreement: float,
    width: int,
    chunks: Chunks | None = None,
) -> Loss:
    """The mean loss of two readings of each row, which follow one another, and how far they are from agreeing.

    That is R-Drop (Wu et al. 2021), halved: `agreement` is its α, by which the mean of both Kullback-Leibler
    divergences counts beside the sum of both losses.
    """
    chunks = chunks or CHUNKS
    of_two = chunks.of_two_readings

    def loss_and_gradient(logits_PV: Tensor, label_P: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
        return of_two(logits_PV, label_P, smoothing, agreement, width)

    # A row's two readings are in the same chunk.
    whole = Chunks(max(1, chunks.positions // (2 * width)) * 2 * width, loss_and_gradient, of_two)
    loss = smoothed_cross_entropy(x_PD, weight_VD, label_P, smoothing=smoothing, chunks=whole)
    return loss._replace(tokens=loss.tokens // 2)


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_PD: Tensor, weight_VD: Tensor, label_P: Tensor, smoothing: float, chunks: Chunks
    ) -> tuple[Tensor, Tensor]:
        wants_gradient = any(ctx.needs_input_grad)
        x_gradient_PD = torch.empty_like(x_PD) if wants_gradient else None
        weight_gradient_VD = torch.zeros_like(weight_VD, dtype=torch.float32) if wants_gradient else None
        total, surprise = torch.zeros(2, device=x_PD.device)
        for start in range(0, x_PD.size(0), chunks.positions):
            part_PD, label = (tensor[start : start + chunks.positions] for tensor in (x_PD, label_P))
            part_total, part_surprise, gradient_PV = chunks.loss_and_gradient(
                aligned_logits(part_PD, weight_VD), label, smoothing
            )
            total, surprise = total + part_total, surprise + part_surprise
            if x_gradient_PD is not None and weight_gradient_VD is not None:
                gradient_PV = gradient_PV.to(x_PD.dtype)
                torch.mm(gradient_PV, weight_VD, out=x_gradient_PD[start : start + chunks.positions])
                _add_product(weight_gradient_VD, gradient_PV.T, part_PD)
        ctx.save_for_backward(x_gradient_PD, weight_gradient_VD)
        ctx.mark_non_differentiable(surprise)
        return total, surprise

    @staticmethod
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        x_gradient_PD, weight_gradient_VD = ctx.saved_tensors
        scale = output_gradients[0]
        # float32 was for the sum over chunks: autograd makes of it what the weight is.
        return _scaled(x_gradient_PD, scale), weight_gradient_VD * scale, None, None, None


def aligned_logits(x_PD: Tensor, weight_VD: Tensor) -> Tensor:
    """x·Wᵀ, laid out so that every position's logits begin where a GPU likes to begin."""
    V = weight_VD.size(0)
    logits_PV = x_PD.new_empty(x_PD.size(0), -(-V // _ALIGNED) * _ALIGNED)[:, :V]
    return torch.mm(x_PD, weight_VD.T, out=logits_PV)


def _scaled(x_PD: Tensor, scale: Tensor) -> Tensor:
    """x times a number that is exact, whatever the precision of x."""
    # A GPU rounds a scalar to the precision of what it is multiplied by; it does not round a vector, even one of one.
    return torch.mul(x_PD, scale.view(1), out=torch.empty_like(x_PD))


def _add_product(total_VD: Tensor, gradient_VP: Tensor, x_PD: Tensor) -> None:
    """Adds a product to a sum that is kept in float32, in one go where the product is float32 too."""
    if x_PD.dtype == total_VD.dtype:
        total_VD.addmm_(gradient_VP, x_PD)
    elif x_PD.is_cuda:
        torch.addmm(total_VD, gradient_VP, x_PD, out_dtype=torch.float32, out=total_VD)
    else:
        total_VD.add_(gradient_VP @ x_PD)


def loss_and_gradient(logits_PV: Tensor, label_P: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Both sums, and the gradient of the first by the logits."""
    counted_P1 = (label_P != IGNORED).unsqueeze(1)
    label_P1 = label_P.clamp_min(0).unsqueeze(1)
    log_probability_PV = logits_PV.float().log_softmax(1)
    surprise_P1 = -log_probability_PV.gather(1, label_P1) * counted_P1
    even_P1 = -log_probability_PV.mean(1, keepdim=True) * counted_P1
    total = ((1 - smoothing) * surprise_P1 + smoothing * even_P1).sum()

    gradient_PV = log_probability_PV.exp_().sub_(smoothing / logits_PV.size(1))
    gradient_PV.scatter_add_(1, label_P1, torch.full_like(surprise_P1, smoothing - 1))
    return total, surprise_P1.sum(), gradient_PV.mul_(counted_P1)


def loss_and_gradient_of_two_readings(
    logits_PV: Tensor, label_P: Tensor, smoothing: float, agreement: float, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Both sums of the mean of the two, the first with what they differ by; and its gradient by all logits."""
    total, surprise, gradient_PV = loss_and_gradient(logits_PV, label_P, smoothing)
    counted_RW1 = (label_P != IGNORED).view(-1, 2, width, 1)[:, 0]
    one_RWV, other_RWV = logits_PV.float().log_softmax(1).reshape(-1, 2, width, logits_PV.size(1)).unbind(1)
    apart_RWV, p_RWV, q_RWV = one_RWV - other_RWV, one_RWV.exp(), other_RWV.exp()
    there_RW1 = (p_RWV * apart_RWV).sum(2, keepdim=True)
    back_RW1 = -(q_RWV * apart_RWV).sum(2, keepdim=True)
    gradients = (
        p_RWV * (apart_RWV - there_RW1 + 1) - q_RWV,
        q_RWV * (-apart_RWV - back_RW1 + 1) - p_RWV,
    )
    apart_gradient = torch.stack([gradient * counted_RW1 for gradient in gradients], dim=1).view_as(gradient_PV)
    differing = ((there_RW1 + back_RW1) * counted_RW1).sum()
    return total / 2 + agreement / 4 * differing, surprise / 2, gradient_PV / 2 + agreement / 4 * apart_gradient


CHUNKS = Chunks(1024, loss_and_gradient, loss_and_gradient_of_two_readings)
"""The plain way."""
GPU_POSITIONS = 8192
"""Of a chunk on a GPU (`gpu.loss.CHUNKS`): here, since memory is estimated where there is no GPU to be asked, too."""
