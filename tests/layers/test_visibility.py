"""Who sees whom, against the rule said in a loop."""

from __future__ import annotations

import torch

from qkv.layers.visibility import not_later, same_segment, somebody


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
