"""The residual connection and norm around each sub-layer (sections 3.1 and 5.4).

Between two sub-layers flows a pair: the residual `x`, and `beside` it what the next one needs to begin with. So the
sum, the dropout and the norm between two sub-layers are one function in either order, and a GPU can do them in one go.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from qkv.layers.dropout import Dropout

Join = Callable[[Tensor, Tensor, nn.Module, Dropout], tuple[Tensor, Tensor]]
"""From the residual and what a sub-layer said of it to the pair that flows on."""


def norm_of_sum(x_RWD: Tensor, y_RWD: Tensor, norm: nn.Module, dropout: Dropout) -> tuple[Tensor, Tensor]:
    """norm(x + dropout(y)): the next residual, and what the next sub-layer reads."""
    normed_RWD = norm(x_RWD + dropout(y_RWD))
    return normed_RWD, normed_RWD


def sum_and_norm(x_RWD: Tensor, y_RWD: Tensor, norm: nn.Module, dropout: Dropout) -> tuple[Tensor, Tensor]:
    """x + dropout(y), the next residual; and its norm, which the next sub-layer reads."""
    sum_RWD = x_RWD + dropout(y_RWD)
    return sum_RWD, norm(sum_RWD)


class PostNorm(nn.Module):
    """norm(x + dropout(f(x))), as the paper has it; beside the residual flows the same norm, for f to read."""

    def __init__(self, width: int, norm: Callable[[int], nn.Module], *, dropout: float) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)
        self.join: Join = norm_of_sum

    def before(self, x_RWD: Tensor, beside_RWD: Tensor | None) -> tuple[Tensor, Tensor]:
        """The residual, and what the sub-layer reads."""
        return x_RWD, x_RWD if beside_RWD is None else beside_RWD

    def after(self, x_RWD: Tensor, y_RWD: Tensor) -> tuple[Tensor, Tensor]:
        """What flows on when the sub-layer has said y."""
        return self.join(x_RWD, y_RWD, self.norm, self.dropout)


class PreNorm(nn.Module):
    """x + dropout(f(norm(x))): the way through is never normed, so deep stacks train without a long warm-up.

    Beside the residual flows what the last f said, to be added where the next one's norm is taken.
    """

    def __init__(self, width: int, norm: Callable[[int], nn.Module], *, dropout: float) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)
        self.join: Join = sum_and_norm

    def before(self, x_RWD: Tensor, beside_RWD: Tensor | None) -> tuple[Tensor, Tensor]:
        """The residual, and what the sub-layer reads."""
        if beside_RWD is None:
            return x_RWD, self.norm(x_RWD)
        return self.join(x_RWD, beside_RWD, self.norm, self.dropout)

    def after(self, x_RWD: Tensor, y_RWD: Tensor) -> tuple[Tensor, Tensor]:
        """What flows on when the sub-layer has said y."""
        return x_RWD, y_RWD


class Through(nn.Module):
    """The end of a stack that closed with a norm already."""

    def before(self, x_RWD: Tensor, beside_RWD: Tensor | None) -> tuple[Tensor, Tensor]:
        return x_RWD, x_RWD if beside_RWD is None else beside_RWD
