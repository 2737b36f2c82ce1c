"""Sampling: translations drawn from the model's own probabilities."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.errors import ConfigError, NotFiniteError, RuleError
from qkv.search.engine import Continuations, Engine, Floats, Integers, S
from qkv.search.hypothesis import Hypothesis, Limits
from qkv.search.ruled import followed
from qkv.search.rules import Rule

_COLDEST = 1e-6
"""A temperature that still divides logits without overflow."""


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn, and how boldly."""

    temperature: float = 1.0
    top_k: int | None = None
    """Draw from this many best tokens only."""
    top_p: float | None = None
    """Draw from the fewest best tokens that have this probability together."""
    epsilon: float | None = None
    """Draw only tokens that the model gives at least this probability, and the best one (Hewitt et al., 2022)."""

    def __post_init__(self) -> None:
        if not _COLDEST <= self.temperature < math.inf:
            raise ConfigError(f"temperature is {self.temperature}; it must be above 0, at least {_COLDEST:f}")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}; it must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        if self.epsilon is not None and not 0 < self.epsilon < 1:
            raise ConfigError(f"epsilon is {self.epsilon}; it must be above 0 and below 1")


class _Draft:
    """A sentence that is being drawn."""

    def __init__(self, rule: Rule | None) -> None:
        self.rule = rule
        self.ids: list[int] = []
        self.gains: list[float] = []
        self.looked: list[Floats] = []
        self.complete = False

    def hypothesis(self) -> Hypothesis:
        total = sum(self.gains)
        looked = np.stack(self.looked) if self.looked else None
        return Hypothesis(self.ids, total, total, self.complete, self.gains, looked)


def sample(
    engine: Engine[S],
    state: S,
    limits: Limits,
    sampling: Sampling,
    *,
    seeds: Sequence[Sequence[int]],
    rules: Sequence[Rule | None] = (),
) -> list[Hypothesis]:
    """One hypothesis for each sentence, by random numbers of its own: the same seed draws the same, whoever is beside.

    What a rule asks for and is not drawn by chance is written where the sentence would end, or before it is too late.
    """
    drafts = [_Draft(rule) for rule in (rules or [None] * len(limits.longest))]
    randoms = [np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seed)))) for seed in seeds]
    sentences = np.arange(len(drafts))
    last: Integers = np.full(len(drafts), limits.begin, dtype=np.int64)
    forbidden = np.array(limits.forbidden, dtype=np.int64)
    while sentences.size:
        continuations, state = engine.step(last, state)
        continuations.forbid(np.arange(len(sentences))[:, None], forbidden[None])
        here = sentences.tolist()
        for row, (number, chance_C, token_C) in enumerate(zip(here, *_chances(continuations, sampling), strict=True)):
            draft = drafts[number]
            room = limits.longest[number] - len(draft.ids) - 1
            drawn = _drawn(chance_C, token_C, draft.rule, randoms[number], end=limits.end, room=room)
            if drawn is None:
                raise RuleError(number)
            last[row] = drawn
        gains = continuations.of(np.arange(len(here)), last).tolist()
        left = []
        for row, number in enumerate(here):
            draft, token = drafts[number], int(last[row])
            draft.gains.append(gains[row])
            if continuations.looked_RK is not None:
                draft.looked.append(continuations.looked_RK[row])
            draft.complete = token == limits.end
            if not draft.complete:
                draft.ids.append(token)
                draft.rule = draft.rule and draft.rule.after(token)
                if len(draft.ids) < limits.longest[number]:
                    left.append(row)
        if left and len(left) < len(here):
            rows = np.array(left, dtype=np.int64)
            state = state.select(rows, rows)
        sentences, last = sentences[left], last[left]
    return [draft.hypothesis() for draft in drafts]


def _chances(continuations: Continuations, sampling: Sampling) -> tuple[Floats, Integers]:
    """What may be drawn for each sentence, and how likely each is."""
    value_RC, token_RC = _drawn_from(continuations, sampling)
    best_R1 = value_RC.max(1, keepdims=True)
    if not np.isfinite(best_R1).all():
        raise NotFiniteError
    # In double precision: hot logits over a cold temperature are far apart.
    weight_RC = np.exp((value_RC - best_R1).astype(np.float64) / sampling.temperature)
    chance_RC = weight_RC / weight_RC.sum(1, keepdims=True)
    if sampling.top_p is not None:
        # The best token stays, whatever its probability.
        beyond_RC = chance_RC.cumsum(1) - chance_RC >= sampling.top_p
        chance_RC = np.where(beyond_RC, 0.0, chance_RC)
    if sampling.epsilon is not None:
        # By the model's own probabilities, which no temperature has changed.
        rare_RC = value_RC < np.minimum(np.log(sampling.epsilon), best_R1)
        chance_RC = np.where(rare_RC, 0.0, chance_RC)
    return chance_RC, token_RC


def _drawn_from(continuations: Continuations, sampling: Sampling) -> tuple[Floats, Integers]:
    """No more than are needed: to put a whole vocabulary in order takes longer than all the rest."""
    if sampling.top_p is not None:
        return continuations.best(sampling.top_k or sys.maxsize)
    if sampling.epsilon is not None:
        # More tokens than this cannot be so likely.
        return continuations.best(min(sampling.top_k or sys.maxsize, math.ceil(1 / sampling.epsilon)))
    if sampling.top_k is not None:
        return continuations.best(sampling.top_k)
    value_RV = continuations.everything()
    return value_RV, np.broadcast_to(np.arange(value_RV.shape[1]), value_RV.shape)


def _drawn(
    chance_C: Floats, token_C: Integers, rule: Rule | None, random: np.random.Generator, *, end: int, room: int
) -> int | None:
    """A token by its chance; in place of one that the rule refuses, what is missing, or another."""
    chance_C = chance_C.copy()
    while chance_C.any():
        sum_C = chance_C.cumsum()
        place = min(int(np.searchsorted(sum_C, random.random() * sum_C[-1], side="right")), len(token_C) - 1)
        token = int(token_C[place])
        if rule is None or followed(rule, token, end=end, room=room) is not None:
            return token
        missing = _missing(rule, end=end, room=room)
        if missing is not None:
            return missing
        chance_C[place] = 0.0
    return None


def _missing(rule: Rule, *, end: int, room: int) -> int | None:
    """What leads on to all that must still be written."""
    followers = ((followed(rule, token, end=end, room=room), token) for token in rule.offers())
    nearer = [(after.left, token) for after, token in followers if after is not None and after.left < rule.left]
    return min(nearer)[1] if nearer else None
