"""What a translator gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from qkv.errors import ConfigError
from qkv.text.alignment import Alignment

if TYPE_CHECKING:
    from qkv.inspecting.inspection import Inspection
    from qkv.translate.looking import Look


@dataclass(frozen=True)
class Translation:
    """A translation and how it ranked; `alternatives` are the other ones of an n-best list, best first."""

    text: str
    score: float
    """What it was ranked by: the log-probability over the length penalty, less what coverage costs; of reranked ones
    the weighted mean of two scores, and of those chosen by likeness the mean likeness to the others, 0 to 100."""
    complete: bool
    """False where the length limit cut it off."""
    alternatives: tuple[Translation, ...] = ()
    tokens: tuple[str, ...] = ()
    """The subwords it was written in; the end, where it was written, is the last."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each of them."""
    alignment: Alignment | None = None
    """Which words of the source its words came from, if that was asked for."""
    word_scores: tuple[float, ...] = ()
    """The log-probability of each word of the alignment's target, where there is one."""

    look: Look | None = field(default=None, compare=False, repr=False)
    """How to look into it, where that can be done."""

    @cached_property
    def attention(self) -> Inspection:
        """What every head looked at while it was written; computed when it is first asked for."""
        if self.look is None:
            raise ConfigError(
                "there is nothing to look into: a text must not be empty, and one model, loaded from its directory, "
                "must have translated it"
            )
        return self.look()

    @property
    def log_probability(self) -> float:
        """Of the whole of it; closer to zero is better."""
        return math.fsum(self.token_scores)


NOTHING = Translation("", 0.0, complete=True)
"""The translation of an empty text."""
