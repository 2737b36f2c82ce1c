"""Dropout: how much is left out, and what becomes of the rest."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from qkv.layers.dropout import Dropout, dropout_by_bits


def dropped(x: Tensor, probability: float, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return dropout_by_bits(x, probability)


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_numbers_are_left_out_as_often_as_asked(probability: float) -> None:
    """Within four standard deviations of the share of 400,000 draws."""
    share = (dropped(torch.ones(400_000), probability) == 0).double().mean().item()
    assert abs(share - probability) < 4 * math.sqrt(probability * (1 - probability) / 400_000)


@pytest.mark.parametrize("probability", [1 - 2**-16, 1 - 2**-17, 1 - 2**-20])
def test_next_to_nothing_is_kept_where_almost_all_is_left_out(probability: float) -> None:
    assert (dropped(torch.ones(400_000), probability) != 0).sum() < 40


@pytest.mark.parametrize("shape", [(3,), (5, 7), (2, 3, 11), (4, 4), (0, 5)])
def test_what_is_kept_is_scaled_up_and_the_rest_is_zero(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    y = dropped(x, 0.25)
    torch.testing.assert_close(y, torch.where(y != 0, x / 0.75, 0))


def test_neighbours_are_left_out_independently() -> None:
    """Four neighbours share a draw of 64 bits; whether both of two are left out must not show it."""
    left_out = (dropped(torch.ones(400_000), 0.3) == 0).view(-1, 4).double()
    for first in range(4):
        for second in range(first + 1, 4):
            both = (left_out[:, first] * left_out[:, second]).mean().item()
            assert abs(both - 0.09) < 4 * math.sqrt(0.09 * 0.91 / 100_000)


def test_gradients_flow_only_through_what_is_kept() -> None:
    x = torch.randn(6, 7, generator=torch.Generator().manual_seed(2)).requires_grad_()
    y = dropped(x, 0.25)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, torch.where(y != 0, 1 / 0.75, 0.0))


def test_the_same_seed_leaves_out_the_same() -> None:
    x = torch.ones(9, 11)
    assert torch.equal(dropped(x, 0.5, seed=3), dropped(x, 0.5, seed=3))
    assert not torch.equal(dropped(x, 0.5, seed=3), dropped(x, 0.5, seed=4))


def test_a_type_stays_what_it_is() -> None:
    assert dropped(torch.ones(5, dtype=torch.bfloat16), 0.5).dtype == torch.bfloat16


def test_nothing_is_left_out_when_not_training_or_not_asked() -> None:
    x = torch.randn(4, 5)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not torch.equal(Dropout(0.5)(x), x)
