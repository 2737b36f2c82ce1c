"""Learning without a schedule: the mean of all steps takes the place of a rate that falls (Defazio et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from qkv.training.averaging import Averaging, copied, follow


class ScheduleFree(Averaging):
    """Algorithm 1 of the paper around any optimizer: gradients are taken at y, between z and x.

    The optimizer moves z (`fast`), x (`mean`) is the mean of what it made, and y = (1 - β)z + βx. Its own momentum is
    for who wants it: β is what takes its place. Two things are not quite the paper's: weights decay towards zero from z
    and not from y, and while Adam's second moment is young, its correction is part of the step alone and not of
    the step's weight in the mean.
    """

    def __init__(self, weights: Mapping[str, Tensor], *, beta: float, warmup_steps: int) -> None:
        self._beta = beta
        self._warmup_steps = warmup_steps
        self.mean = copied(weights)
        self.fast = copied(weights)

    def share_at(self, step: int) -> float:
        """γ² of this step by the sum of those so far, where γ rises in a line while warming up and then stays."""
        warm = min(step, self._warmup_steps)
        so_far = warm * (warm + 1) * (2 * warm + 1) / (6 * self._warmup_steps**2) + step - warm
        return (warm / self._warmup_steps) ** 2 / so_far

    @torch.no_grad()
    def before(self, weights: Mapping[str, Tensor]) -> None:
        _copy(weights, self.fast)

    @torch.no_grad()
    def after(self, weights: Mapping[str, Tensor], share: Tensor) -> None:
        _copy(self.fast, weights)
        follow(self.mean, self.fast, share)
        self.restored(weights)

    def files(self, weights: Mapping[str, Tensor]) -> dict[str, Mapping[str, Tensor]]:  # noqa: ARG002
        return {"weights": self.mean, "fast": self.fast}

    @torch.no_grad()
    def restored(self, weights: Mapping[str, Tensor]) -> None:
        torch._foreach_copy_(
            [*weights.values()], torch._foreach_lerp([*self.fast.values()], [*self.mean.values()], self._beta)
        )


def _copy(to: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    torch._foreach_copy_([*to.values()], [*weights.values()])
