"""Scoring what is already written: the model reads a given target and says how likely each of its tokens was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkv.search.engine import Engine, Floats, Integers, S
from qkv.search.hypothesis import Hypothesis, Limits, Penalty


def forced(
    engine: Engine[S], state: S, limits: Limits, targets: Sequence[Sequence[int]], *, penalty: Penalty
) -> list[Hypothesis]:
    """Each target as a hypothesis, as if the search had found it: its end counts, but where the limit cuts it off."""
    written = [[*target, limits.end][:longest] for target, longest in zip(targets, limits.longest, strict=True)]
    gains: list[list[float]] = [[] for _ in written]
    looked: list[list[Floats]] = [[] for _ in written]
    rows: Integers = np.arange(len(written))
    last: Integers = np.full(len(written), limits.begin, dtype=np.int64)
    length = 0
    while rows.size:
        continuations, state = engine.step(last, state)
        last = np.array([written[row][length] for row in rows.tolist()], dtype=np.int64)
        gain = continuations.of(np.arange(len(rows)), last).tolist()
        for place, row in enumerate(rows.tolist()):
            gains[row].append(gain[place])
            if continuations.looked_RK is not None:
                looked[row].append(continuations.looked_RK[place])
        length += 1
        left = np.array(
            [place for place, row in enumerate(rows.tolist()) if length < len(written[row])], dtype=np.int64
        )
        if left.size and left.size < rows.size:
            state = state.select(left, left)
        rows, last = rows[left], last[left]
    return [
        Hypothesis(
            [*target][: len(some)],
            sum(some),
            sum(some) / penalty(len(some)),
            len(some) > len(target),
            some,
            np.stack(seen) if seen else None,
        )
        for target, some, seen in zip(targets, gains, looked, strict=True)
    ]
