"""Position-wise feed-forward networks (section 3.3)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

Network = Callable[[Tensor, nn.Linear, nn.Linear], Tensor]


def relu_network(x_RWD: Tensor, widen: nn.Linear, narrow: nn.Linear) -> Tensor:
    """Equation 2: max(0, xW₁ + b₁)W₂ + b₂."""
    y_RWD: Tensor = narrow(functional.relu(widen(x_RWD)))
    return y_RWD


Gated = Callable[[Tensor, nn.Linear, nn.Linear, nn.Linear], Tensor]


def gated_network(x_RWD: Tensor, gate: nn.Linear, widen: nn.Linear, narrow: nn.Linear) -> Tensor:
    """(silu(xW₁) * xW₂)W₃ (SwiGLU)."""
    y_RWD: Tensor = narrow(functional.silu(gate(x_RWD)) * widen(x_RWD))
    return y_RWD


class FeedForward(nn.Module):
    """Equation 2: widen, cut off below zero, narrow."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        self.network: Network = relu_network

    def forward(self, x_RWD: Tensor) -> Tensor:
        return self.network(x_RWD, self.widen, self.narrow)


class GatedFeedForward(nn.Module):
    """One half of the hidden layer decides how much of the other half goes through (SwiGLU)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.widen = nn.Linear(width, hidden, bias=False)
        self.narrow = nn.Linear(hidden, width, bias=False)
        self.network: Gated = gated_network

    def forward(self, x_RWD: Tensor) -> Tensor:
        return self.network(x_RWD, self.gate, self.widen, self.narrow)
