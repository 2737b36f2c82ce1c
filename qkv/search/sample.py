"""Sampling: translations drawn from the model's own probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.errors import ConfigError, NotFiniteError, RuleError
from qkv.search.engine import Continuations, Engine, Floats, Integers, S
from qkv.search.hypothesis import Hypothesis, Limits
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

    Of the rules, those are kept to that forbid, or that say which token comes next.
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
            last[row] = _drawn(chance_C, token_C, drafts[number].rule, randoms[number], number)
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
    """What may be drawn for each sentence, best first, and how likely each is."""
    if sampling.top_k is not None:
        value_RC, token_RC = continuations.best(sampling.top_k)
    else:
        value_RV = continuations.everything()
        token_RC = np.argsort(-value_RV, axis=1, kind="stable")
        value_RC = np.take_along_axis(value_RV, token_RC, axis=1)
    if not np.isfinite(value_RC[:, 0]).all():
        raise NotFiniteError
    # In double precision: hot logits over a cold temperature are far apart.
    weight_RC = np.exp((value_RC - value_RC[:, :1]).astype(np.float64) / sampling.temperature)
    chance_RC = weight_RC / weight_RC.sum(1, keepdims=True)
    if sampling.top_p is not None:
        # The best token stays, whatever its probability.
        beyond_RC = chance_RC.cumsum(1) - chance_RC >= sampling.top_p
        chance_RC = np.where(beyond_RC, 0.0, chance_RC)
    if sampling.epsilon is not None:
        # By the model's own probabilities, which no temperature has changed.
        rare_RC = value_RC < np.log(sampling.epsilon)
        rare_RC[:, 0] = False
        chance_RC = np.where(rare_RC, 0.0, chance_RC)
    return chance_RC, token_RC


def _drawn(chance_C: Floats, token_C: Integers, rule: Rule | None, random: np.random.Generator, number: int) -> int:
    """A token by its chance, of those that the rule allows."""
    if rule is not None and rule.left and rule.offers():
        return min(rule.offers())
    chance_C = chance_C.copy()
    while chance_C.any():
        sum_C = chance_C.cumsum()
        place = min(int(np.searchsorted(sum_C, random.random() * sum_C[-1], side="right")), len(token_C) - 1)
        if rule is None or rule.allows(int(token_C[place])):
            return int(token_C[place])
        chance_C[place] = 0.0
    raise RuleError(number)
