"""Who sees whom, against the rule said in a loop."""

from __future__ import annotations

import pytest
import torch

from qkv.layers.visibility import Sentences, not_later, same_segment, somebody, within_sentences


def test_only_a_sentences_own_positions_are_seen_and_nobodys_see_all() -> None:
    looking, seen = torch.tensor([[1, 1, 2, 0], [1, 2, 3, 3]]), torch.tensor([[1, 2, 2, 0, 0], [1, 1, 2, 3, 0]])
    visible = same_segment(looking, seen)
    assert visible.shape == (2, 1, 4, 5)
    for r in range(2):
        for w in range(4):
            for k in range(5):
                assert visible[r, 0, w, k] == (looking[r, w] in (0, seen[r, k]))


def test_no_real_position_sees_nobodys() -> None:
    segments = torch.tensor([[1, 1, 2, 0, 0]])
    assert not same_segment(segments, segments)[0, 0, :3, 3:].any()


def test_the_last_ones_look_at_themselves_and_before() -> None:
    visible = not_later(3, 5, torch.device("cpu"))
    assert visible.shape == (1, 1, 3, 5)
    for w in range(3):
        for k in range(5):
            assert visible[0, 0, w, k] == (k <= w + 2)


def test_somebody_is_any_token() -> None:
    assert somebody(torch.tensor([[1, 1, 0], [1, 2, 3]])).tolist() == [[[[True, True, False]]], [[[True] * 3]]]


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("looking", [5, 2])
def test_sentences_are_seen_as_far_as_they_may_be(looking: int, later: bool) -> None:
    """Where fewer look than are seen, they are the last ones: a rule that counts from the first is not theirs."""
    seen = torch.tensor([[1, 1, 2, 2, 0]])
    last = seen[:, -looking:]
    visible = within_sentences(last, seen, later=later)
    for w in range(looking):
        for k in range(5):
            no_later = k <= w + 5 - looking
            assert visible.mask[0, 0, w, k] == (last[0, w] in (0, seen[0, k]) and (later or no_later))
    assert isinstance(visible, Sentences) == (later or looking == 5)
