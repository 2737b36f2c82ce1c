"""What a device offers that searches by itself, without being asked for every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from qkv.search.hypothesis import Hypothesis, Limits, Penalty


class WholeSearch(Protocol):
    """A beam search that finds what `search.beam` finds, where there are no rules to keep to."""

    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Limits,
        *,
        width: int,
        penalty: Penalty,
        keep: int = 1,
        abandoned: Callable[[int], bool] | None = None,
    ) -> list[list[Hypothesis]]:
        """The best `keep` hypotheses of each source, which has its end, best first.

        A source that `abandoned` says nobody waits for any more leaves within a few steps, and has no hypothesis.
        """
        ...
