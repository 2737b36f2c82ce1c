"""Position-wise feed-forward networks (section 3.3)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class FeedForward(nn.Module):
    """Equation 2: widen, cut off below zero, narrow."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)

    def forward(self, x_RWD: Tensor) -> Tensor:
        hidden_RWF = functional.relu(self.widen(x_RWD))
        y_RWD: Tensor = self.narrow(hidden_RWF)
        return y_RWD


class GatedFeedForward(nn.Module):
    """One half of the hidden layer decides how much of the other half goes through (SwiGLU)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.widen = nn.Linear(width, hidden, bias=False)
        self.narrow = nn.Linear(hidden, width, bias=False)

    def forward(self, x_RWD: Tensor) -> Tensor:
        hidden_RWF = functional.silu(self.gate(x_RWD)) * self.widen(x_RWD)
        y_RWD: Tensor = self.narrow(hidden_RWF)
        return y_RWD
