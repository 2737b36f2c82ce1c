"""Beam search with a length penalty (section 6.1); greedy search is a beam of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.errors import NotFiniteError, RuleError
from qkv.search.engine import Continuations, Engine, Floats, Integers, S
from qkv.search.hypothesis import Hypothesis, Limits, Penalty
from qkv.search.record import Considered, Record
from qkv.search.ruled import Held, Ways, shared_out
from qkv.search.rules import Rule
from qkv.search.tree import Moment, Tree

_NOTHING = np.float32(-np.inf)
_LEAST_LOOK = 1e-6


class Coverage(NamedTuple):
    """What it costs to look past a part of the source (Wu et al., 2016)."""

    weight: float
    lengths: list[int]
    """How many tokens each source has, its end included."""

    def cost(self, sentence: int, looked: Sequence[Floats]) -> float:
        looked_K = np.sum(looked, axis=0)[: self.lengths[sentence]]
        return self.weight * -float(np.log(np.clip(looked_K, _LEAST_LOOK, 1.0)).sum())


def beam_search(
    engine: Engine[S],
    state: S,
    limits: Limits,
    *,
    width: int,
    penalty: Penalty,
    keep: int = 1,
    rules: Sequence[Rule | None] = (),
    coverage: Coverage | None = None,
    abandoned: Callable[[int], bool] | None = None,
    record: Record | None = None,
) -> list[list[Hypothesis]]:
    """The best `keep` hypotheses of each sentence, best first, that a beam of this width finds.

    There is a rule, or None, for each sentence, or no rules at all; what they ask for is kept to. A sentence that
    `abandoned` says nobody waits for any more leaves at the next step, and has no hypothesis. A `record` is told all
    that is considered for the first sentence.
    """
    beam = Beam(
        limits,
        width=width,
        penalty=penalty,
        keep=keep,
        rules=rules,
        coverage=coverage,
        abandoned=abandoned,
        record=record,
    )
    for _ in walk(engine, state, beam):
        pass
    return beam.best()


def walk(engine: Engine[S], state: S, beam: Beam) -> Iterator[Moment]:
    """Lets a beam grow until all its sentences are settled, and shows every step."""
    while beam.sentences.size:
        before = beam.sentences
        continuations, state = engine.step(beam.token_R, state)
        hypotheses_R = beam.advance(continuations)
        yield beam.tree.moments[-1]
        lost = beam.sentences.size < before.size
        # A beam of one that lost no sentence goes on as it stands: nothing needs to be copied.
        if beam.sentences.size and (beam.width > 1 or lost):
            state = state.select(hypotheses_R, np.searchsorted(before, beam.sentences) if lost else None)


class _Moves(NamedTuple):
    """The best continuations of each sentence, twice as many as the beam is wide, best first."""

    score_NC: Floats
    parent_NC: Integers
    token_NC: Integers
    gain_NC: Floats
    forced_NC: Floats
    """What of the score was no choice, because a rule wanted something finished."""


class _Found(NamedTuple):
    """A hypothesis that is done, by its place in the tree."""

    rank: float
    """Its score but for what was no choice: however unlikely that is, a longer translation makes it no better."""
    score: float
    log_probability: float
    length: int
    place: int
    end_gain: float | None
    """What the end added; None where the limit cut it off."""


class Beam:
    """The hypotheses still alive, those found, and the sentences that are still being looked at."""

    def __init__(
        self,
        limits: Limits,
        *,
        width: int,
        penalty: Penalty,
        keep: int = 1,
        rules: Sequence[Rule | None] = (),
        coverage: Coverage | None = None,
        abandoned: Callable[[int], bool] | None = None,
        record: Record | None = None,
    ) -> None:
        N = len(limits.longest)
        self.width = width
        self.sentences: Integers = np.arange(N)
        self.token_R: Integers = np.full(N, limits.begin, dtype=np.int64)
        """The last token of every hypothesis alive."""
        self.tree = Tree()
        self._limits = limits
        self._penalty = penalty
        self._keep = keep
        self._held: dict[int, list[Held]] = {n: [Held(rule)] for n, rule in enumerate(rules) if rule is not None}
        """For each sentence that has a rule, what its hypotheses are held to."""
        self._crowded: set[int] = set()
        """Sentences with a rule for which something allowed was left out: what they find need not be the best."""
        self._coverage = coverage
        self._abandoned = abandoned or (lambda _: False)
        self._given_up: set[int] = set()
        """Sentences that left because nobody waits for them."""
        self._found: list[list[_Found]] = [[] for _ in range(N)]
        # All hypotheses of a sentence would begin alike: it begins with one.
        self._score_NB: Floats = np.zeros((N, 1), dtype=np.float32)
        self._record = record
        if record is not None and N:
            record.begin(width=width, penalty=penalty, end=limits.end, longest=limits.longest[0])

    def advance(self, continuations: Continuations) -> Integers:
        """One token more: gives the hypotheses that were continued, of the sentences that are left."""
        N, B = self._score_NB.shape
        moves = self._moves(continuations)
        ended_NC = moves.token_NC == self._limits.end
        alive_NC = np.where(ended_NC, _NOTHING, moves.score_NC)
        place_NB = np.argsort(-alive_NC, axis=1, kind="stable")[:, : self.width]
        looked_RK = continuations.looked_RK
        now = Moment(
            self.sentences,
            np.take_along_axis(alive_NC, place_NB, axis=1),
            np.take_along_axis(moves.parent_NC, place_NB, axis=1),
            np.take_along_axis(moves.token_NC, place_NB, axis=1),
            np.take_along_axis(moves.gain_NC, place_NB, axis=1),
            None if looked_RK is None else looked_RK.reshape(N, B, -1),
        )
        self.tree.moments.append(now)
        if self._record is not None and self.sentences[0] == 0:
            considered = (moves.score_NC[0], moves.parent_NC[0], moves.token_NC[0], place_NB[0])
            self._record.steps.append(Considered(*considered))
        self._collect_ended(moves, ended_NC)
        self._collect_cut_off(now)
        alive = now.score_NB.tolist()
        left = [n for n, sentence in enumerate(self.sentences.tolist()) if self._goes_on(sentence, alive[n])]
        self.sentences, self._score_NB = self.sentences[left], now.score_NB[left]
        self.token_R = now.token_NB[left].reshape(-1)
        hypotheses_NB: Integers = now.parent_NB + B * np.arange(N)[:, None]
        return hypotheses_NB[left].reshape(-1)

    def best(self) -> list[list[Hypothesis]]:
        """The best of what was found, best first; nothing where a sentence was given up."""
        for number, found in enumerate(self._found):
            if not found and number not in self._given_up:
                if number in self._held:
                    raise RuleError(number)
                raise NotFiniteError
        return [
            [self._hypothesis(number, one) for one in sorted(found, key=lambda one: -one.rank)[: self._keep]]
            for number, found in enumerate(self._found)
        ]

    def _moves(self, continuations: Continuations) -> _Moves:
        """Twice the width of them, so that enough are left if half of them end."""
        N, B = self._score_NB.shape
        continuations.forbid(np.arange(N * B)[:, None], np.array(self._limits.forbidden, dtype=np.int64)[None])
        # The best continuations of a sentence are among the best of each of its hypotheses.
        gain_RC, token_RC = continuations.best(2 * self.width)
        if np.isnan(gain_RC[:, 0]).any():
            raise NotFiniteError
        score = (gain_RC + self._score_NB.reshape(-1, 1)).reshape(N, -1)
        place = np.argsort(-score, axis=1, kind="stable")[:, : 2 * self.width]
        moves = _Moves(
            np.take_along_axis(score, place, axis=1),
            place // gain_RC.shape[1],
            np.take_along_axis(token_RC.reshape(N, -1), place, axis=1),
            np.take_along_axis(gain_RC.reshape(N, -1), place, axis=1),
            np.zeros(place.shape, dtype=np.float32),
        )
        return self._within_rules(moves, continuations) if self._held else moves

    def _within_rules(self, moves: _Moves, continuations: Continuations) -> _Moves:
        """The same, but for sentences that have a rule those that it allows: first such as end, then such as go on."""
        B = self._score_NB.shape[1]
        moves = _wider(moves, 2 * self.width)
        ways = Ways(continuations, cache(continuations.best), self._limits.end)
        for n, sentence in enumerate(self.sentences.tolist()):
            if sentence not in self._held:
                continue
            room = self._limits.longest[sentence] - len(self.tree.moments) - 1
            allowed = ways.moves(self._held[sentence], self._score_NB[n], B * n, count=2 * self.width, room=room)
            ended, alive = shared_out(allowed, self.width, self._limits.end)
            alive.sort(key=lambda move: -move.score)
            if len(ended) + len(alive) < len(allowed):
                self._crowded.add(sentence)
            moves.score_NC[n] = -np.inf
            moves.token_NC[n] = self._limits.begin
            for c, move in enumerate([*ended, *alive]):
                moves.score_NC[n, c], moves.parent_NC[n, c], moves.token_NC[n, c], moves.gain_NC[n, c] = move[:4]
                moves.forced_NC[n, c] = move.held.forced
            # Hypotheses that are no more have a rule too, which nobody asks.
            spare = [self._held[sentence][0]] * (self.width - len(alive))
            self._held[sentence] = [*(move.held for move in alive), *spare]
        return moves

    def _collect_ended(self, moves: _Moves, ended_NC: NDArray[np.bool_]) -> None:
        """Those that end, if they are among the best `width`: others would not have been looked at."""
        length = len(self.tree.moments) - 1
        for n, c in np.argwhere(ended_NC[:, : self.width]).tolist():
            score = float(moves.score_NC[n, c])
            if score > -np.inf:
                end_gain, forced = float(moves.gain_NC[n, c]), float(moves.forced_NC[n, c])
                self._collect(n, score, length, int(moves.parent_NC[n, c]), end_gain, forced)

    def _collect_cut_off(self, now: Moment) -> None:
        """Hypotheses that have as many tokens as they may."""
        length = len(self.tree.moments)
        for n, sentence in enumerate(self.sentences.tolist()):
            if length >= self._limits.longest[sentence]:
                for place, score in enumerate(now.score_NB[n].tolist()):
                    if score > -np.inf:
                        forced = self._held[sentence][place].forced if sentence in self._held else 0.0
                        self._collect(n, score, length, place, None, forced)

    def _collect(
        self, n: int, log_probability: float, length: int, place: int, end_gain: float | None, forced: float
    ) -> None:
        sentence = int(self.sentences[n])
        penalty = self._penalty(length + (end_gain is not None))
        score, rank = log_probability / penalty, (log_probability - forced) / penalty
        found = _Found(rank, score, log_probability, length, place, end_gain)
        if self._coverage is not None:
            cost = self._coverage.cost(sentence, self._looked(sentence, found))
            found = found._replace(rank=rank - cost, score=score - cost)
        self._found[sentence].append(found)

    def _goes_on(self, sentence: int, alive: list[float]) -> bool:
        if not self._hopeful(sentence, alive):
            return False
        if self._abandoned(sentence):
            self._given_up.add(sentence)
            self._found[sentence].clear()
            return False
        return True

    def _hopeful(self, sentence: int, alive: list[float]) -> bool:
        """Whether something alive can still be among the best."""
        length, limit, best = len(self.tree.moments), self._limits.longest[sentence], alive[0]
        if length >= limit or best == -np.inf:
            return False
        found = sorted((one.rank for one in self._found[sentence]), reverse=True)
        if len(found) < self._keep:
            return True
        if self.width == 1:
            # Greedy search takes the best word, also where that is the end: no penalty makes it look further.
            return False
        if sentence in self._crowded:
            # Those that have not paid yet for what they must write would be hopeful for long: they are believed to get
            # it for nothing, but to end then.
            hopes = (
                (score - held.forced) / self._penalty(min(length + held.rule.left + 1, limit))
                for score, held in zip(alive, self._held[sentence], strict=True)
            )
            return max(hopes) > found[self._keep - 1]
        # A log-probability only falls from here on; the penalty is kindest at one end or the other.
        hope = max(best / self._penalty(length + 1), best / self._penalty(limit))
        return hope > found[self._keep - 1]

    def _looked(self, sentence: int, found: _Found) -> list[Floats]:
        """Where the hypothesis looked when each of its tokens was chosen, the end included."""
        looked = self.tree.path(sentence, found.length, found.place).looked
        return looked if found.end_gain is None else [*looked, *self.tree.looked(sentence, found.length, found.place)]

    def _hypothesis(self, sentence: int, found: _Found) -> Hypothesis:
        path = self.tree.path(sentence, found.length, found.place)
        complete = found.end_gain is not None
        looked = self._looked(sentence, found)
        return Hypothesis(
            path.ids,
            found.log_probability,
            found.score,
            complete,
            path.gains if found.end_gain is None else [*path.gains, found.end_gain],
            np.stack(looked) if looked else None,
        )


def _wider(moves: _Moves, width: int) -> _Moves:
    """The same with room for so many; a small vocabulary may have fewer continuations than that."""
    spare = ((0, 0), (0, width - moves.score_NC.shape[1]))
    return _Moves(
        np.pad(moves.score_NC, spare, constant_values=-np.inf),
        np.pad(moves.parent_NC, spare),
        np.pad(moves.token_NC, spare),
        np.pad(moves.gain_NC, spare),
        np.pad(moves.forced_NC, spare),
    )
