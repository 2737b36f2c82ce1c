"""How a sentence that has a rule is continued.

What must be written is unlikely where the model would not have written it: compared with all others, hypotheses that
have begun with it would be dropped. So they compete among those that are equally far, and each stage keeps its share of
the beam (dynamic beam allocation, Post and Vilar 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
        """The best continuations that the rule allows, and all that it offers."""
        offered = sorted(rule.offers())
        gains = self._continuations.of(np.full(len(offered), row), np.array(offered, dtype=np.int64))
        wanted = [*self._passing(rule, offered, gains.tolist(), room)]
        # Where what is left barely fits, there is no use in looking for anything else.
        is_pressed = bool(wanted) and rule.left >= room
        looked_at = 0
        while True:
            gain_RC, token_RC = self._best(count)
            found = [*self._passing(rule, token_RC[row].tolist(), gain_RC[row].tolist(), room)]
            if found or is_pressed or token_RC.shape[1] == looked_at:
                break
            looked_at, count = token_RC.shape[1], count * _MORE
        known = {token for token, _, _ in found}
        return [*found, *(one for one in wanted if one[0] not in known)]

    def _passing(
        self, rule: Rule, tokens: Iterable[int], gains: Iterable[float], room: int
    ) -> Iterator[tuple[int, float, Rule]]:
        for token, gain in zip(tokens, gains, strict=True):
            after = followed(rule, token, end=self._end, room=room) if gain > -np.inf else None
            if after is not None:
                yield token, gain, after


def followed(rule: Rule, token: int, *, end: int, room: int) -> Rule | None:
    """The rule after this token, where `room` more may come, the end included; None where it may not be written."""
    if not rule.allows(token):
        return None
    if token == end:
        return None if rule.left else rule
    after = rule.after(token)
    # All that must be written still has to fit, and the end after it.
    return after if after.left < max(room, 1) else None


def shared_out(moves: Sequence[Move], width: int, end: int) -> tuple[list[Move], list[Move]]:
    """Of the moves, best first, those that end and those that go on: each stage has its share of the beam."""
    stages: dict[int, list[Move]] = {}
    for move in moves:
        stages.setdefault(move.rule.met, []).append(move)
    furthest = stages[max(stages)] if stages else []
    ended = [move for move in furthest[:width] if move.token == end]
    living = [[move for move in stages[met] if move.token != end] for met in sorted(stages, reverse=True)]
    living = [stage for stage in living if stage]
    share = max(1, width // max(1, len(living)))
    kept = [move for stage in living for move in stage[:share]][:width]
    others = sorted((move for stage in living for move in stage[share:]), key=lambda move: -move.score)
    return ended, [*kept, *others[: width - len(kept)]]
