"""Learning rates are the paper's, and weights decay where they should."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from qkv.config import TrainingConfig
from qkv.training.optimizer import build_optimizers, learning_rate, paper_learning_rate


@pytest.mark.parametrize("step", [1, 2, 3999, 4000, 4001, 100_000])
def test_the_paper_schedule_is_equation_3(step: int) -> None:
    # d^-0.5 · min(step^-0.5, step · warmup^-1.5), with the numbers of the base model.
    expected = 1 / 512**0.5 * min(1 / step**0.5, step / (4000 * 4000**0.5))
    assert learning_rate(TrainingConfig(), 512, step) == pytest.approx(expected, rel=1e-12)


def test_the_paper_schedule_peaks_where_warming_up_ends() -> None:
    rates = [paper_learning_rate(step, 512, 4000) for step in range(1, 12_000)]
    assert rates.index(max(rates)) + 1 == 4000
    assert max(rates) == pytest.approx(6.99e-4, rel=1e-3)


def test_the_linear_schedule_rises_stays_and_ends_at_zero() -> None:
    config = TrainingConfig(schedule="linear", learning_rate=2.0, steps=100, warmup_steps=10, decay_from=0.4)
    rates = [learning_rate(config, 512, step) for step in range(1, 102)]
    assert rates[:10] == pytest.approx([0.2 * step for step in range(1, 11)])
    assert rates[10:40] == [2.0] * 30
    falls = [before - after for before, after in itertools.pairwise(rates[41:])]
    assert falls == pytest.approx([falls[0]] * len(falls))
    assert rates[99] > 0
    assert rates[100] == 0


def test_the_linear_schedule_stays_at_zero_when_asked_beyond_its_end() -> None:
    config = TrainingConfig(schedule="linear", learning_rate=2.0, steps=100, warmup_steps=10)
    assert learning_rate(config, 512, 500) == 0


def test_the_constant_schedule_stays_after_warming_up() -> None:
    config = TrainingConfig(schedule="constant", learning_rate=3.0, warmup_steps=4)
    assert [learning_rate(config, 512, step) for step in (1, 2, 4, 5, 900)] == [0.75, 1.5, 3.0, 3.0, 3.0]


def test_weights_decay_in_matrices_and_nowhere_else() -> None:
    part = nn.ModuleDict({"linear": nn.Linear(3, 5), "norm": nn.LayerNorm(5)})
    before = {name: one.detach().clone() for name, one in part.named_parameters()}
    config = TrainingConfig(optimizer="adamw", learning_rate=0.1, weight_decay=0.5)
    (optimizer,) = build_optimizers(config, dict(part.named_parameters()), {"linear.weight"})
    for parameter in part.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in part.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name] * (0.95 if name == "linear.weight" else 1))
