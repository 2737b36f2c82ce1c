"""Batches that grow: small ones at first, when every batch would say much the same, and large ones later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Ramp(NamedTuple):
    """Every size is half the next and has an equal share of the first steps; after these, steps have all rows.

    Few sizes, for a GPU makes a graph of each.
    """

    sizes: int
    steps: int
    """How many have fewer rows than a step has in the end."""

    def rows_before(self, step: int, rows: int) -> int:
        """Rows of all the steps before step n, counted from 0, where a step has so many in the end."""
        return sum(
            size * max(0, (step if end is None else min(step, end)) - begin) for size, begin, end in self.stages(rows)
        )

    def stages(self, rows: int) -> Iterator[tuple[int, int, int | None]]:
        """Each size, the first step that has it, and the first that does not any more."""
        smaller = self.sizes - 1
        for stage in range(smaller):
            yield rows >> (smaller - stage), stage * self.steps // smaller, (stage + 1) * self.steps // smaller
        yield rows, self.steps, None


NO_RAMP = Ramp(sizes=1, steps=0)
