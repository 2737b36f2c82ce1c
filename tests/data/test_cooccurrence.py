"""What stands together."""

from __future__ import annotations

import numpy as np
import pytest

from qkv.data import cooccurrence
from qkv.data.cooccurrence import Cooccurrence

PAIRS = [([1, 2, 2], [5]), ([1], [5, 6]), ([3], [6, 6])]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [(1, 5, 1.0), (2, 5, 2 / 3), (1, 6, 0.5), (3, 6, 2 / 3), (3, 5, 0.0), (2, 6, 0.0), (9, 9, 0.0), (8, 5, 0.0)],
)
def test_the_coefficient_of_dice_counts_pairs(source: int, target: int, expected: float) -> None:
    known = Cooccurrence(10, PAIRS)
    assert known.dice(np.array([source]), np.array([target])) == pytest.approx([expected])


def test_it_is_computed_for_many_at_once() -> None:
    known = Cooccurrence(10, PAIRS)
    assert known.dice(np.array([1, 3, 2]), np.array([6, 6, 5])) == pytest.approx([0.5, 2 / 3, 2 / 3])


def test_of_nothing_nothing_is_known() -> None:
    assert Cooccurrence(10, [([1], [1])]).dice(np.array([4]), np.array([4])) == pytest.approx([0.0])


def test_counting_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = (grid.ravel() for grid in np.meshgrid(np.arange(10), np.arange(10)))
    at_once = Cooccurrence(10, PAIRS).dice(source, target)
    monkeypatch.setattr(cooccurrence, "_AT_ONCE", 2)
    assert Cooccurrence(10, PAIRS).dice(source, target).tolist() == at_once.tolist()


def test_what_belongs_to_a_subword_most_comes_first() -> None:
    rows = Cooccurrence(10, PAIRS).likely(2, missing=9, without=np.array([], np.int64))
    assert rows[[1, 2, 3, 4]].tolist() == [[5, 6], [5, 9], [6, 9], [9, 9]]


def test_the_frequent_are_those_of_most_targets() -> None:
    assert Cooccurrence(10, [*PAIRS, ([4], [6, 7])]).frequent(2).tolist() == [6, 5]
    assert Cooccurrence(10, PAIRS).frequent(8).tolist() == [5, 6]
