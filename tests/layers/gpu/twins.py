"""Holds a fast part against its plain twin: what they make of the same numbers, and all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

Lying = Callable[[Tensor], Tensor]
"""Some numbers, and how they lie in memory."""

# As a share of the largest number: what sums in another order, and bfloat16's eight bits, may do.
_TOLERANCE = {torch.float32: 1e-5, torch.float16: 2**-9, torch.bfloat16: 2**-6}

in_all_precisions = pytest.mark.parametrize(
    "precision", [torch.float32, torch.float16, torch.bfloat16], ids=["float32", "float16", "bfloat16"]
)
in_both_precisions = pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


def needs_products(device: torch.device, precision: torch.dtype) -> None:
    """Skips what the interpreter cannot do: it multiplies the bits of bfloat16 as if they were whole numbers."""
    if device.type == "cpu" and precision == torch.bfloat16:
        pytest.skip("Triton's interpreter has no products in bfloat16; float16 is tried instead")


def numbers(*shape: int, seed: int, device: torch.device, precision: torch.dtype = torch.float32) -> Tensor:
    """Random numbers, which learn."""
    some = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return some.to(device, precision).requires_grad_()


def exact(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same numbers in float32, which a twin can be held against whatever its own precision."""
    return [one.detach().float().requires_grad_() for one in tensors]


def in_rows(x: Tensor) -> Tensor:
    return x


def in_columns(x: Tensor) -> Tensor:
    """The numbers of a vector lie apart, and the vectors between each other."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def one_for_all(x: Tensor) -> Tensor:
    """A vector is one number again and again, which is in memory once: so lies the gradient of a sum."""
    return x[..., :1].expand_as(x)


in_rows_or_not = pytest.mark.parametrize("lying", [in_rows, in_columns, one_for_all])


def results(
    outputs: Sequence[Tensor], learned: Sequence[Tensor], *, used: Sequence[int] | None = None, lying: Lying = in_rows
) -> list[Tensor]:
    """The outputs, then the gradients of everything learned when each output used is asked for something else."""
    asking = dict(enumerate(outputs)) if used is None else {number: outputs[number] for number in used}
    asked = [
        lying(numbers(*one.shape, seed=100 + number, device=one.device, precision=one.dtype).detach())
        for number, one in asking.items()
    ]
    gradients = torch.autograd.grad(list(asking.values()), learned, asked, materialize_grads=True)
    return [*(one.detach() for one in outputs), *gradients]


def agree(ours: Sequence[Tensor], plain: Sequence[Tensor], *, factor: float = 1.0) -> None:
    """Whether all are the same but for the rounding of our precision."""
    for one, other in zip(ours, plain, strict=True):
        assert one.shape == other.shape
        tolerance = factor * _TOLERANCE[one.dtype] * max(1.0, other.abs().max().item())
        torch.testing.assert_close(one.float(), other.float(), rtol=0, atol=tolerance)
