"""How a sentence that has a rule is continued.

What must be written is unlikely where the model would not have written it: compared with all others, hypotheses that
have begun with it would be dropped. So they compete among those that are equally far, and each stage keeps its share of
the beam (dynamic beam allocation, Post and Vilar 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from qkv.search.engine import Continuations, Floats, Integers
from qkv.search.rules import Rule

_MORE = 8
"""So many times as many continuations are looked at where a rule allows none of the first ones."""


class Move(NamedTuple):
    """A token more for one of a sentence's hypotheses, and the rule for what follows it."""

    score: float
    parent: int
    token: int
    gain: float
    rule: Rule


class Ways:
    """What the rules of a sentence's hypotheses let follow."""

    def __init__(self, continuations: Continuations, best: Callable[[int], tuple[Floats, Integers]], end: int) -> None:
        self._continuations = continuations
        self._best = best
        """The best so many continuations of all rows, remembered."""
        self._end = end

    def moves(self, rules: Sequence[Rule], score_B: Floats, first_row: int, *, count: int, room: int) -> list[Move]:
        """All that may follow, best first; `room` tokens may come after it, the end included."""
        moves = [
            Move(score + gain, parent, token, gain, after)
            for parent, (rule, score) in enumerate(zip(rules, score_B.tolist(), strict=True))
            if score > -np.inf
            for token, gain, after in self._allowed(rule, first_row + parent, count, room)
        ]
        return sorted(moves, key=lambda move: -move.score)

    def _allowed(self, rule: Rule, row: int, count: int, room: int) -> list[tuple[int, float, Rule]]:
        looked_at = 0
        while True:
            gain_RC, token_RC = self._best(count)
            found = [*self._passing(rule, token_RC[row].tolist(), gain_RC[row].tolist(), room)]
            if found or token_RC.shape[1] == looked_at:
                break
            looked_at, count = token_RC.shape[1], count * _MORE
        known = {token for token, _, _ in found}
        offered = sorted(token for token in rule.offers() if token not in known)
        if offered:
            gains = self._continuations.of(np.full(len(offered), row), np.array(offered))
            found += self._passing(rule, offered, gains.tolist(), room)
        return found

    def _passing(
        self, rule: Rule, tokens: Iterable[int], gains: Iterable[float], room: int
    ) -> Iterator[tuple[int, float, Rule]]:
        for token, gain in zip(tokens, gains, strict=True):
            if gain == -np.inf or not rule.allows(token):
                continue
            if token == self._end:
                if not rule.left:
                    yield token, gain, rule
                continue
            after = rule.after(token)
            # All that must be written still has to fit, and the end after it.
            if after.left < max(room, 1):
                yield token, gain, after


def shared_out(moves: Sequence[Move], width: int, end: int) -> tuple[list[Move], list[Move]]:
    """Of the moves, best first, those that end and those that go on: each stage has its share of the beam."""
    furthest = max((move.rule.met for move in moves), default=0)
    ended = [move for move in [one for one in moves if one.rule.met == furthest][:width] if move.token == end]
    alive = sorted((move for move in moves if move.token != end), key=lambda move: -move.rule.met)
    stages = [[*stage] for _, stage in groupby(alive, key=lambda move: move.rule.met)]
    share = max(1, width // max(1, len(stages)))
    kept = [move for stage in stages for move in stage[:share]][:width]
    others = sorted((move for stage in stages for move in stage[share:]), key=lambda move: -move.score)
    return ended, [*kept, *others[: width - len(kept)]]
