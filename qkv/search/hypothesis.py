"""What a search finds, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qkv.search.engine import Floats

Penalty = Callable[[int], float]
"""What a log-probability is divided by, given the number of tokens, the end included."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation as ids, without begin and end."""

    ids: list[int]
    log_probability: float
    score: float
    """What hypotheses are ranked by: the log-probability over the length penalty, less what coverage costs."""
    complete: bool
    """False where the length limit cut it off before its end."""
    token_scores: list[float] = field(default_factory=list, compare=False)
    """The log-probability of each token, the end included where it was written."""
    looked_TK: Floats | None = field(default=None, compare=False)
    """How much each position of the source was looked at when each of these was chosen, if that was asked for."""


@dataclass(frozen=True)
class Limits:
    """The ids a search must know, and how many tokens each sentence's translation may have, its end included."""

    begin: int
    end: int
    longest: list[int]
    forbidden: tuple[int, ...] = ()
    """Ids that are never written: marks that are no part of any text."""


def paper_penalty(alpha: float) -> Penalty:
    """((5 + length) / 6)^α, of Wu et al. (2016), which the paper follows."""
    return lambda length: ((5 + length) / 6) ** alpha
