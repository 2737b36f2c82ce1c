"""Who may look at whom: positions of the same sentence, and in the decoder none that come later (section 3.2.3)."""

from __future__ import annotations

import torch
from torch import Tensor


def same_segment(looking_RW: Tensor, seen_RK: Tensor) -> Tensor:
    """True where both positions belong to the same sentence of a row.

    Nobody's positions (segment 0) look everywhere: a softmax over nothing is not a number.
    """
    looking_RW1 = looking_RW.unsqueeze(2)
    visible_RWK = (looking_RW1 == seen_RK.unsqueeze(1)) | (looking_RW1 == 0)
    return visible_RWK.unsqueeze(1)


def somebody(seen_RK: Tensor) -> Tensor:
    """True where there is a token at all, whoever looks."""
    return (seen_RK != 0)[:, None, None, :]


def not_later(looking: int, seen: int, device: torch.device) -> Tensor:
    """True where the seen position is no later than the looking one, of which there are the last `looking`."""
    visible_WK = torch.ones(looking, seen, dtype=torch.bool, device=device).tril(seen - looking)
    return visible_WK[None, None]
