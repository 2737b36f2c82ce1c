"""The residual connection and norm around each sub-layer f (sections 3.1 and 5.4): `after(x, f(before(x)))`."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from qkv.layers.dropout import Dropout


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
