"""Several projections of the same input as one product: the input is read once, and so is its gradient made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from qkv.layers.gpu.layout import joined


def together(x_RWD: Tensor, projections: Sequence[nn.Linear]) -> tuple[Tensor, ...]:
    """What each projection makes of x; the twin of `attention.apart`."""
    weights = [one.weight for one in projections]
    biases = [one.bias for one in projections if one.bias is not None]
    parts: tuple[Tensor, ...] = _Together.apply(x_RWD, len(weights), *weights, *biases)  # type: ignore[no-untyped-call]
    return parts


class _Together(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_RWD: Tensor, count: int, *weights_and_biases: Tensor) -> tuple[Tensor, ...]:
        weights, biases = weights_and_biases[:count], weights_and_biases[count:]
        ctx.widths = [weight.size(0) for weight in weights]
        ctx.biased = bool(biases)
        weight = torch.cat(weights)
        ctx.save_for_backward(x_RWD, weight)
        y = torch.nn.functional.linear(x_RWD, weight, torch.cat(biases) if biases else None)
        parts: tuple[Tensor, ...] = y.split(ctx.widths, dim=-1)
        return parts

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x_RWD, weight = ctx.saved_tensors
        gradient = joined(gradients, ctx.widths)
        gradient_PF, x_PD = gradient.flatten(0, -2), x_RWD.flatten(0, -2)
        weight_gradients = (gradient_PF.T @ x_PD).split(ctx.widths)
        bias_gradients = gradient_PF.sum(0).split(ctx.widths) if ctx.biased else ()
        return gradient @ weight, None, *weight_gradients, *bias_gradients
