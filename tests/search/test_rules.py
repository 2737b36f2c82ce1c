"""Rules of a search, against exhaustive search among all that keeps to them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from qkv.errors import RuleError
from qkv.search.beam import Coverage, beam_search
from qkv.search.engine import Floats, Integers, Known
from qkv.search.forced import forced
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from qkv.search.rules import AtLeast, NoRepeats, Prefix, Rule, Together
from qkv.search.sample import Sampling, sample
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes

LONGEST = 5
LIMITS = Limits(begin=BEGIN, end=END, longest=[LONGEST] * 3)
PENALTY = paper_penalty(0.6)
Keeps = Callable[[list[int]], bool]


def repeats(ids: list[int], size: int) -> bool:
    runs = [tuple(ids[place : place + size]) for place in range(len(ids) - size + 1)]
    return len({*runs}) < len(runs)


RULES: dict[str, tuple[Rule, Keeps]] = {
    "a first token": (Prefix((2,)), lambda ids: ids[:1] == [2]),
    "three first tokens": (Prefix((2, 1, 1)), lambda ids: ids[:3] == [2, 1, 1]),
    "no token twice": (NoRepeats(1), lambda ids: not repeats(ids, 1)),
    "no two tokens twice": (NoRepeats(2), lambda ids: not repeats(ids, 2)),
    "at least two tokens": (AtLeast(END, 2), lambda ids: len(ids) >= 2),
    "two rules": (
        Together((Prefix((1, 2)), NoRepeats(2))),
        lambda ids: ids[:2] == [1, 2] and not repeats(ids, 2),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_beam_as_wide_as_the_space_finds_the_best_that_keep_to_the_rule(name: str) -> None:
    """The sentence beside it has none, and is translated as if it were alone."""
    (rule, keeps), model = RULES[name], MadeUp(3)
    found = beam_search(
        model, Prefixes.of(0, 1, 2), LIMITS, width=3**5, penalty=PENALTY, keep=9, rules=[rule, None, rule]
    )
    for sentence, ours in enumerate(found):
        everything = model.everything(sentence, LIMITS, LONGEST, PENALTY)
        expected = [one for one in everything if sentence == 1 or keeps(one.ids)][:9]
        assert [(one.ids, one.complete) for one in ours] == [(one.ids, one.complete) for one in expected]
        assert [one.score for one in ours] == pytest.approx([one.score for one in expected], rel=1e-5)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_kept_to_however_narrow_the_beam(name: str, width: int) -> None:
    (rule, keeps), model = RULES[name], MadeUp(8, end_bonus=1.0)
    found = beam_search(
        model, Prefixes.of(*range(3)), LIMITS, width=width, penalty=PENALTY, keep=width, rules=[rule] * 3
    )
    for sentence, best in enumerate(found):
        for one in best:
            assert keeps(one.ids)
            expected = model.log_probability(sentence, one.ids, complete=one.complete)
            assert one.log_probability == pytest.approx(expected, rel=1e-5)
            assert sum(one.token_scores) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["a first token", "no token twice", "three first tokens", "two rules"])
def test_what_is_drawn_keeps_to_the_rule(name: str) -> None:
    rule, keeps = RULES[name]
    limits = Limits(begin=BEGIN, end=END, longest=[LONGEST] * 40)
    drawn = sample(
        MadeUp(8), Prefixes.of(*range(40)), limits, Sampling(), seeds=[(1, n) for n in range(40)], rules=[rule] * 40
    )
    assert all(keeps(one.ids) for one in drawn)
    assert len({tuple(one.ids) for one in drawn}) > 20


def test_a_rule_that_cannot_be_kept_to_is_told() -> None:
    with pytest.raises(RuleError, match="no translation has all that was asked for") as told:
        beam_search(
            MadeUp(4), Prefixes.of(0, 1, 2), LIMITS, width=2, penalty=PENALTY, rules=[None, Prefix((1,) * 5), None]
        )
    assert told.value.sentence == 1


class Looking(MadeUp):
    """Looks at four positions of its source, each time otherwise."""

    def looked(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
        weight = np.exp(3 * MadeUp(4).logits(sentence + 100, prefix))
        shares: Floats = (weight / weight.sum()).astype(np.float32)
        return shares

    def step(self, token_R: Integers, state: Prefixes) -> tuple[Known, Prefixes]:
        known, state = super().step(token_R, state)
        beams = len(state.written) // len(state.sentences)
        looked = [self.looked(state.sentences[row // beams], prefix) for row, prefix in enumerate(state.written)]
        return Known(known.everything(), np.stack(looked)), state

    def path(self, sentence: int, one: Hypothesis) -> Floats:
        """Where it looked when each token, and the end, was chosen."""
        length = len(one.ids) + one.complete
        return np.stack([self.looked(sentence, tuple(one.ids[:place])) for place in range(length)])


@pytest.mark.parametrize("width", [1, 3])
def test_a_hypothesis_tells_where_it_looked(width: int) -> None:
    model = Looking(7)
    for sentence, best in enumerate(
        beam_search(model, Prefixes.of(0, 1, 2), LIMITS, width=width, penalty=PENALTY, keep=width)
    ):
        for one in best:
            assert one.looked_TK is not None
            np.testing.assert_array_equal(one.looked_TK, model.path(sentence, one))


def test_coverage_ranks_by_what_was_looked_at() -> None:
    """The last of the four positions is padding of the second source."""
    model, lengths = Looking(3), [4, 3, 4]
    found = beam_search(
        model, Prefixes.of(0, 1, 2), LIMITS, width=3**5, penalty=PENALTY, keep=9, coverage=Coverage(0.3, lengths)
    )
    changed = 0
    for sentence, ours in enumerate(found):

        def score(one: Hypothesis, sentence: int = sentence) -> float:
            seen = model.path(sentence, one).sum(0)[: lengths[sentence]]
            return one.score + 0.3 * float(np.log(np.minimum(seen, 1)).sum())

        everything = model.everything(sentence, LIMITS, LONGEST, PENALTY)
        best = sorted(everything, key=lambda one: -score(one))[:9]
        assert [one.ids for one in ours] == [one.ids for one in best]
        assert [one.score for one in ours] == pytest.approx([score(one) for one in best], rel=1e-4)
        changed += [one.ids for one in best] != [one.ids for one in everything[:9]]
    assert changed


def test_a_given_target_is_scored_as_if_it_had_been_found() -> None:
    model, targets = Looking(6), [[3, 1, 2], [], [5, 5, 1, 2]]
    for sentence, (one, ids) in enumerate(
        zip(forced(model, Prefixes.of(0, 1, 2), LIMITS, targets, penalty=PENALTY), targets, strict=True)
    ):
        expected = model.log_probability(sentence, ids, complete=True)
        assert (one.ids, one.complete) == (ids, True)
        assert one.log_probability == pytest.approx(expected, rel=1e-5)
        assert one.score == pytest.approx(expected / PENALTY(len(ids) + 1), rel=1e-5)
        assert len(one.token_scores) == len(ids) + 1
        assert one.looked_TK is not None
        np.testing.assert_array_equal(one.looked_TK, model.path(sentence, one))
