"""What is given is scored as the search scores what it finds."""

from __future__ import annotations

import pytest

from qkv.search.beam import beam_search
from qkv.search.forced import forced
from qkv.search.hypothesis import Limits, paper_penalty
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes


def test_what_the_search_found_is_scored_alike() -> None:
    """What was cut off too: the limit is the same."""
    model, sentences = MadeUp(7, end_bonus=0.2), [*range(12)]
    limits = Limits(begin=BEGIN, end=END, longest=[2 + number % 5 for number in sentences])
    found = [
        best for (best,) in beam_search(model, Prefixes.of(*sentences), limits, width=3, penalty=paper_penalty(0.6))
    ]
    given = forced(model, Prefixes.of(*sentences), limits, [one.ids for one in found], penalty=paper_penalty(0.6))
    assert {one.complete for one in found} == {True, False}
    for ours, theirs in zip(given, found, strict=True):
        assert (ours.ids, ours.complete) == (theirs.ids, theirs.complete)
        assert ours.score == pytest.approx(theirs.score, rel=1e-5)
        assert ours.log_probability == pytest.approx(theirs.log_probability, rel=1e-5)
        assert ours.token_scores == pytest.approx(theirs.token_scores)


def test_targets_of_different_lengths_change_nothing_for_one_another() -> None:
    model = MadeUp(6)
    targets = [[1, 2, 3, 4], [], [5], [1, 1], [2, 3, 4, 5, 1]]
    limits = Limits(begin=BEGIN, end=END, longest=[9] * 5)
    together = forced(model, Prefixes.of(*range(5)), limits, targets, penalty=float)
    for sentence, (one, ids) in enumerate(zip(together, targets, strict=True)):
        assert one.ids == ids
        assert one.complete
        expected = model.log_probability(sentence, ids, complete=True)
        assert one.log_probability == pytest.approx(expected)
        assert one.score == pytest.approx(expected / (len(ids) + 1))


def test_a_target_beyond_the_limit_is_scored_as_far_as_that() -> None:
    model = MadeUp(6)
    limits = Limits(begin=BEGIN, end=END, longest=[2, 3, 3])
    found = forced(model, Prefixes.of(0, 1, 2), limits, [[1, 2, 3]] * 2 + [[1, 2]], penalty=float)
    assert [(one.ids, one.complete) for one in found] == [([1, 2], False), ([1, 2, 3], False), ([1, 2], True)]
    assert found[0].log_probability == pytest.approx(model.log_probability(0, [1, 2], complete=False))
