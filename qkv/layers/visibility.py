"""Who may look at whom: positions of the same sentence, and in the decoder none that come later (section 3.2.3)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Visible(NamedTuple):
    """Who may look at whom, as a mask; and as the rule behind it where that is all there is to it."""

    mask: Tensor
    """Of shape R1WK; alike for all rows, or for all that look, it may have a 1 there."""
    segments: tuple[Tensor, Tensor] | None = None
    """The sentence of each position that looks, and of each that is seen, where sentences are the rule."""
    later: bool = True
    """Whether later positions may be seen too."""


def within_sentences(looking_RW: Tensor, seen_RK: Tensor, *, later: bool) -> Visible:
    """Everybody sees the positions of the same sentence, or those of them that are no later."""
    mask = same_segment(looking_RW, seen_RK)
    if not later:
        mask = mask & not_later(looking_RW.size(1), seen_RK.size(1), seen_RK.device)
    # The rule counts both sides' positions from the same place: with a past before them, only the mask is right.
    aligned = later or looking_RW.size(1) == seen_RK.size(1)
    return Visible(mask, (looking_RW, seen_RK) if aligned else None, later)


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
