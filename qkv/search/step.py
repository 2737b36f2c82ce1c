"""What a search needs of a model, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from torch import Tensor


class SearchState(Protocol):
    """What a model knows of the sentences in search and of what was written so far."""

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> Self:
        """Goes on with these hypotheses, of these sentences (None: all of them)."""
        ...


S = TypeVar("S", bound=SearchState)

Step = Callable[[Tensor, S], tuple[Tensor, S]]
"""Takes the last token of every hypothesis and a state; gives the logits of the next one and the state after.

The logits are the search's own: it may write over them."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation as ids, without begin and end."""

    ids: list[int]
    log_probability: float
    score: float
    """The log-probability over the length penalty: what hypotheses are ranked by."""
    complete: bool
    """False where the length limit cut it off before its end."""


@dataclass(frozen=True)
class Limits:
    """The ids a search must know, and how many tokens each sentence's translation may have, its end included."""

    begin: int
    end: int
    longest: list[int]
    forbidden: tuple[int, ...] = ()
    """Ids that are never written: marks that are no part of any text."""
