"""What a translator gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """A translation and how it ranked; `alternatives` are the other ones of an n-best list, best first."""

    text: str
    score: float
    """Log-probability over the length penalty; closer to zero is better."""
    complete: bool
    """False where the length limit cut it off."""
    alternatives: tuple[Translation, ...] = ()
    tokens: tuple[str, ...] = ()
    """The subwords it was written in; the end, where it was written, is the last."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each of them."""
