"""How a sentence that has a rule is continued.

What must be written is unlikely where the model would not have written it: compared with all others, hypotheses that
have begun with it would be dropped. So they compete among those that are equally far, and each stage keeps its share of
the beam (dynamic beam allocation, Post and Vilar 2018). Those that are in the middle of something that must be finished
are one stage, however far they are: else the first ones to begin, at the very beginning of the sentence, would soon be
the whole beam. They compete by where they began, since what follows was not theirs to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from qkv.search.engine import Continuations, Floats, Integers
from qkv.search.rules import Rule

_MORE = 8
"""So many times as many continuations are looked at where a rule allows none of the first ones."""


class Held(NamedTuple):
    """A hypothesis that is held to a rule."""

    rule: Rule
    forced: float = 0.0
    """The log-probability of those of its tokens that had to be written to finish something."""


class Move(NamedTuple):
    """A token more for one of a sentence's hypotheses, and what it is held to after it."""

    score: float
    parent: int
    token: int
    gain: float
    held: Held

    @property
    def merit(self) -> float:
        """What is compared inside a sentence: the score but for what was not a choice."""
        return self.score - self.held.forced


class Ways:
    """What the rules of a sentence's hypotheses let follow."""

    def __init__(self, continuations: Continuations, best: Callable[[int], tuple[Floats, Integers]], end: int) -> None:
        self._continuations = continuations
        self._best = best
        """The best so many continuations of all rows, remembered."""
        self._end = end

    def moves(self, held: Sequence[Held], score_B: Floats, first_row: int, *, count: int, room: int) -> list[Move]:
        """All that may follow, best first; `room` tokens may come after it, the end included."""
        moves = [
            Move(score + gain, parent, token, gain, Held(after, forced + gain * rule.is_bound))
            for parent, ((rule, forced), score) in enumerate(zip(held, score_B.tolist(), strict=True))
            if score > -np.inf
            for token, gain, after in self._allowed(rule, first_row + parent, count, room)
        ]
        return sorted(moves, key=lambda move: -move.merit)

    def _allowed(self, rule: Rule, row: int, count: int, room: int) -> list[tuple[int, float, Rule]]:
        """The best continuations that the rule allows, and all that it offers."""
        offered = sorted(rule.offers())
        gains = self._continuations.of(np.full(len(offered), row), np.array(offered, dtype=np.int64))
        wanted = [*self._passing(rule, offered, gains.tolist(), room)]
        # Where what is left barely fits, or has been begun, there is no use in looking for anything else.
        is_pressed = bool(wanted) and (rule.is_bound or rule.left >= room)
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
    begun: list[Move] = []
    for move in moves:
        (begun if move.held.rule.is_bound else stages.setdefault(move.held.rule.met, [])).append(move)
    furthest = stages[max(stages)] if stages else []
    ended = [move for move in furthest[:width] if move.token == end]
    others = [stages[met] for met in sorted(stages, reverse=True)[1:]]
    living = [[move for move in stage if move.token != end] for stage in (furthest, begun, *others)]
    living = [stage for stage in living if stage]
    share = max(1, width // max(1, len(living)))
    kept = [move for stage in living for move in stage[:share]][:width]
    rest = sorted((move for stage in living for move in stage[share:]), key=lambda move: -move.merit)
    return ended, [*kept, *rest[: width - len(kept)]]
