"""Who may look at whom: positions of the same sentence, and in the decoder none that come later (section 3.2.3)."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor


class Visible:
    """Who may look at whom, as a mask."""

    def __init__(self, mask: Tensor) -> None:
        self._mask = mask

    @property
    def mask(self) -> Tensor:
        """Of shape R1WK; alike for all rows, or for all that look, it may have a 1 there."""
        return self._mask


class Sentences(Visible):
    """The rule behind the mask where sentences are all there is to it, and both sides are counted from the same place.

    Kernels that know the rule need no mask, so it is made for the first that asks for it.
    """

    def __init__(self, looking_RW: Tensor, seen_RK: Tensor, *, later: bool) -> None:
        self.looking_RW = looking_RW
        """The sentence of each position that looks."""
        self.seen_RK = seen_RK
        """That of each position that is seen."""
        self.later = later
        """Whether later positions may be seen too."""

    @cached_property
    def mask(self) -> Tensor:
        return _mask(self.looking_RW, self.seen_RK, later=self.later)


def within_sentences(looking_RW: Tensor, seen_RK: Tensor, *, later: bool) -> Visible:
    """Everybody sees the positions of the same sentence, or those of them that are no later."""
    if later or looking_RW.size(1) == seen_RK.size(1):
        return Sentences(looking_RW, seen_RK, later=later)
    # With a past before those that look, only the mask is right.
    return Visible(_mask(looking_RW, seen_RK, later=later))


def _mask(looking_RW: Tensor, seen_RK: Tensor, *, later: bool) -> Tensor:
    mask = same_segment(looking_RW, seen_RK)
    return mask if later else mask & not_later(looking_RW.size(1), seen_RK.size(1), seen_RK.device)


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
