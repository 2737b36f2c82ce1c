"""What dropout promises, wherever it is done."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

PROBABILITY = 0.3


def check_dropout(drop: Callable[[Tensor], Tensor], shape: tuple[int, ...], device: torch.device) -> None:
    """`drop` leaves out numbers of what it is given, and scales up the rest; its input is given as ones."""
    x = torch.ones(shape, device=device, requires_grad=True)
    torch.manual_seed(1)
    dropped = drop(x)
    kept = dropped != 0
    torch.testing.assert_close(dropped, torch.where(kept, 1 / (1 - PROBABILITY), 0.0))
    # Within four standard deviations.
    count = x.numel()
    assert abs(kept.float().mean().item() - (1 - PROBABILITY)) < 4 * math.sqrt(PROBABILITY * (1 - PROBABILITY) / count)
    # Neighbours are left out independently: within a vector, and one below the other.
    left_out = (~kept).float().flatten(0, -2)
    both = PROBABILITY**2
    for one, other in [(left_out[:, 1:], left_out[:, :-1]), (left_out[1:], left_out[:-1])]:
        share = (one * other).mean().item()
        assert abs(share - both) < 5 * math.sqrt(both * (1 - both) / one.numel())
    # Backward drops what forward dropped.
    asked = torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(device)
    (gradient,) = torch.autograd.grad((dropped * asked).sum(), x)
    torch.testing.assert_close(gradient, torch.where(kept, asked / (1 - PROBABILITY), 0.0))
    # Other calls and other seeds drop others; the same seed the same.
    assert not torch.equal(drop(x) != 0, kept)
    torch.manual_seed(2)
    assert not torch.equal(drop(x) != 0, kept)
    torch.manual_seed(1)
    assert torch.equal(drop(x), dropped)
