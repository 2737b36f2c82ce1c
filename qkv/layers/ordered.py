"""Linear layers whose weights are put in this CPU's order once, instead of anew at every product: for translating.

A product of few rows spends much of its time on bringing the weights into the order the processor wants. oneDNN,
which comes with torch, can keep them in that order; the numbers are the same but for rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_FEW_ROWS = 8
"""Below this many rows a product is so short that the plain way is quicker."""


class OrderedLinear(nn.Module):
    """A linear layer that translates only: its weights are a copy that does not learn."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._plain = weight.detach()
        self._bias = None if bias is None else bias.detach()
        self._ordered = torch.ops.mkldnn._reorder_linear_weight(self._plain, None)

    def forward(self, x: Tensor) -> Tensor:
        if x.numel() < _FEW_ROWS * x.size(-1):
            return functional.linear(x, self._plain, self._bias)
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._ordered, self._bias, "none", [], "")
        return y


def can_order(device: torch.device) -> bool:
    """Whether this torch, on this device, has what `OrderedLinear` is made of."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return device.type == "cpu" and bool(available) and _has_operators()


def _has_operators() -> bool:
    try:
        return bool(torch.ops.mkldnn._reorder_linear_weight and torch.ops.mkldnn._linear_pointwise)
    except AttributeError:
        return False


def order(model: nn.Module) -> None:
    """Replaces every linear layer inside the model by its ordered twin."""
    for parent in list(model.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, nn.Linear):
                setattr(parent, name, OrderedLinear(part.weight, part.bias))
