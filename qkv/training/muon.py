"""Muon: momentum for matrices whose every step moves all directions alike (Jordan et al. 2024; Liu et al. 2025)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

_MOMENTUM = 0.95
_ROOT_MEAN_SQUARE = 0.2
"""Of an update before the learning rate: about that of Adam's, so that both go with the same learning rates."""
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the polynomial that takes singular values towards one: steepest at zero rather than exact at one."""
_ITERATIONS = 5


class Matrices(Protocol):
    """Matrices of which this process may keep only a part."""

    def shape(self, parameter: Tensor) -> torch.Size:
        """Of the whole matrix."""

    def whole(self, parameters: Sequence[Tensor], part_NDF: Tensor) -> Tensor:
        """What belongs to these matrices, of one shape, made whole."""

    def share(self, parameters: Sequence[Tensor], whole_NDF: Tensor) -> Sequence[Tensor]:
        """This process's part of each."""


class Uncut:
    """Matrices that this process has all of."""

    def shape(self, parameter: Tensor) -> torch.Size:
        return parameter.shape

    def whole(self, parameters: Sequence[Tensor], part_NDF: Tensor) -> Tensor:  # noqa: ARG002
        return part_NDF

    def share(self, parameters: Sequence[Tensor], whole_NDF: Tensor) -> Sequence[Tensor]:  # noqa: ARG002
        return whole_NDF.unbind()


UNCUT = Uncut()


class Muon(torch.optim.Optimizer):
    """For the matrices between a model's first and last layer; matrices of one shape are worked on together.

    Knows `grad_scale` and `found_inf` as torch's fused optimizers do, and keeps everything on the device.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, weight_decay: float, matrices: Matrices = UNCUT) -> None:
        super().__init__(groups, {"weight_decay": weight_decay, "lr": 0.0})
        self._matrices = matrices
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        del closure
        for group in self.param_groups:
            shapes = defaultdict(list)
            for parameter in group["params"]:
                shapes[self._matrices.shape(parameter)].append(parameter)
            for shape, parameters in shapes.items():
                self._move(parameters, group["lr"], group["weight_decay"], max(shape))

    def _move(self, parameters: list[Tensor], rate: Tensor, weight_decay: float, longer: int) -> None:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        assert len(gradients) == len(parameters), "every matrix has a gradient"
        momentums = [self.state[parameter]["momentum"] for parameter in parameters]
        device = gradients[0].device
        finite = 1 - getattr(self, "found_inf", torch.zeros((), device=device))
        scale = getattr(self, "grad_scale", torch.ones((), device=device))
        # What is not finite stays so when it is multiplied by zero: it is taken out before the momentum sees it.
        gradient_NDF = torch.stack(gradients).div_(scale).nan_to_num_(0.0, 0.0, 0.0)
        momentum_NDF = torch.stack(momentums).lerp_(gradient_NDF, (1 - _MOMENTUM) * finite)
        torch._foreach_copy_(momentums, list(momentum_NDF.unbind()))
        update_NDF = orthogonal(self._matrices.whole(parameters, gradient_NDF.lerp_(momentum_NDF, _MOMENTUM)))
        torch._foreach_mul_(parameters, 1 - rate * weight_decay * finite)
        distance = -rate * finite * (_ROOT_MEAN_SQUARE * longer**0.5)
        torch._foreach_add_(parameters, list(self._matrices.share(parameters, update_NDF * distance)))


def orthogonal(matrix_NDF: Tensor) -> Tensor:
    """Each matrix with its singular values brought near one, by Newton and Schulz's iteration."""
    tall = matrix_NDF.size(-2) > matrix_NDF.size(-1)
    x = matrix_NDF.mT if tall else matrix_NDF
    # bfloat16 is exact enough for a direction; a CPU has it only slowly.
    x = x.bfloat16() if x.is_cuda else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrix_NDF.dtype)
