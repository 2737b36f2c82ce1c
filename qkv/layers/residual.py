"""The residual connection and norm around each sub-layer (sections 3.1 and 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn

from qkv.layers.dropout import Dropout


class Residual(Protocol):
    """What a block needs around a sub-layer f: x becomes `after(x, f(before(x)))`."""

    def before(self, x_RWD: Tensor) -> Tensor: ...
    def after(self, x_RWD: Tensor, y_RWD: Tensor) -> Tensor: ...


class PostNorm(nn.Module):
    """norm(x + dropout(f(x))), as the paper has it."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module], *, dropout: float) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)

    def before(self, x_RWD: Tensor) -> Tensor:
        return x_RWD

    def after(self, x_RWD: Tensor, y_RWD: Tensor) -> Tensor:
        normed_RWD: Tensor = self.norm(x_RWD + self.dropout(y_RWD))
        return normed_RWD


class PreNorm(nn.Module):
    """x + dropout(f(norm(x))): the way through is never normed, so deep stacks train without a long warm-up."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module], *, dropout: float) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)

    def before(self, x_RWD: Tensor) -> Tensor:
        normed_RWD: Tensor = self.norm(x_RWD)
        return normed_RWD

    def after(self, x_RWD: Tensor, y_RWD: Tensor) -> Tensor:
        sum_RWD: Tensor = x_RWD + self.dropout(y_RWD)
        return sum_RWD
