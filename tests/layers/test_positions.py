"""Positions, against the paper's formula and by what they promise."""

from __future__ import annotations

import math

import pytest
import torch

from qkv.layers.positions import LearnedPositions, Nowhere, Rotary, Sinusoids, Still

WIDTH = 10


def test_sinusoids_are_the_papers_formula() -> None:
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))."""
    positions = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 0, 77, 500, 1023]])
    expected = torch.zeros(2, 6, WIDTH, dtype=torch.float64)
    for r, row in enumerate(positions.tolist()):
        for w, position in enumerate(row):
            for i in range(WIDTH // 2):
                expected[r, w, 2 * i] = math.sin(position / 10000 ** (2 * i / WIDTH))
                expected[r, w, 2 * i + 1] = math.cos(position / 10000 ** (2 * i / WIDTH))
    torch.testing.assert_close(Sinusoids(WIDTH)(positions), expected.float(), atol=1e-4, rtol=0)


def test_sinusoids_know_no_end() -> None:
    far = Sinusoids(WIDTH)(torch.tensor([[10_000_000]]))
    assert far.isfinite().all() and far.abs().max() <= 1


def test_learned_positions_are_rows_of_their_weight() -> None:
    torch.manual_seed(1)
    learned = LearnedPositions(WIDTH, longest=7)
    torch.nn.init.normal_(learned.weight_KD)
    vectors = learned(torch.tensor([[0, 6, 3], [2, 2, 0]]))
    assert torch.equal(vectors[0, 1], learned.weight_KD[6])
    assert torch.equal(vectors[1, 0], vectors[1, 1])
    with pytest.raises(IndexError):
        learned(torch.tensor([[7]]))


def test_rotary_scores_depend_only_on_distance() -> None:
    torch.manual_seed(1)
    query, key = torch.randn(2, 3, 4, WIDTH), torch.randn(2, 3, 4, WIDTH)
    turn = Rotary()
    positions = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 1]])
    score = turn(query, positions) @ turn(key, positions).transpose(-2, -1)
    moved = turn(query, positions + 40) @ turn(key, positions + 40).transpose(-2, -1)
    torch.testing.assert_close(score, moved, atol=1e-4, rtol=0)
    apart = turn(query, positions + 1) @ turn(key, positions).transpose(-2, -1)
    assert (apart - score).abs().max() > 0.1


def test_rotary_turns_without_stretching_and_leaves_the_first_position_alone() -> None:
    torch.manual_seed(1)
    x, positions = torch.randn(2, 3, 4, WIDTH), torch.tensor([[0, 5, 6, 7], [0, 1, 2, 300]])
    turned = Rotary()(x, positions)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], x[:, :, 0])
    assert (turned[:, :, 1:] - x[:, :, 1:]).abs().max() > 0.1


def test_rotary_turns_each_pair_by_the_sinusoids_angle() -> None:
    """A pair that points along its first dimension becomes that position's cosine and sine."""
    x = torch.tensor([1.0, 0.0]).repeat(WIDTH // 2).expand(1, 1, 3, -1)
    positions = torch.tensor([[0, 4, 9]])
    turned = Rotary()(x, positions)[0, 0]
    waves = Sinusoids(WIDTH)(positions)[0]
    torch.testing.assert_close(turned[:, 0::2], waves[:, 1::2])
    torch.testing.assert_close(turned[:, 1::2], waves[:, 0::2])


def test_nowhere_and_still_change_nothing() -> None:
    x, positions = torch.randn(2, 3, 4, WIDTH), torch.arange(8).view(2, 4)
    assert torch.equal(Still()(x, positions), x)
    assert torch.equal(x[:, 0] + Nowhere()(positions), x[:, 0])
