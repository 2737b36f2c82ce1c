"""Muon, against what a singular value decomposition says."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from qkv.config import TrainingConfig
from qkv.training import train_prepared
from qkv.training.muon import Muon, orthogonal
from qkv.training.optimizer import build_optimizers
from tests import toy
from tests.models.families import small_model
from tests.models.test_contract import share_reversed, to_reverse, two_a_row
from tests.training.crashing import interrupted
from tests.training.steps import stepping


def matrices(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", [(3, 8, 20), (2, 20, 8), (1, 9, 9)])
def test_directions_stay_and_singular_values_come_near_one(shape: tuple[int, ...]) -> None:
    some = matrices(*shape)
    left, values, right = torch.linalg.svd(some, full_matrices=False)
    assert values.max() / values.min() > 1.5
    seen = left.mT @ orthogonal(some) @ right.mT
    after = seen.diagonal(dim1=-2, dim2=-1)
    assert after.min() > 0.6
    assert after.max() < 1.3
    torch.testing.assert_close(seen, torch.diag_embed(after), rtol=0, atol=1e-4)
    # Nothing is added to what is not in the matrix.
    torch.testing.assert_close(left @ seen @ right, orthogonal(some), rtol=0, atol=1e-4)


def test_a_direction_three_hundred_times_weaker_moves_as_much_as_the_others() -> None:
    left, _, right = torch.linalg.svd(matrices(1, 6, 9), full_matrices=False)
    values = torch.tensor([1.0, 0.9, 0.7, 0.5, 0.3, 1 / 300])
    seen = (left.mT @ orthogonal(left * values @ right) @ right.mT)[0].diagonal()
    assert seen.min() > 0.6
    assert seen.max() < 1.3


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_size_of_a_matrix_does_not_matter(factor: float) -> None:
    some = matrices(2, 5, 7)
    torch.testing.assert_close(orthogonal(some * factor), orthogonal(some), rtol=0, atol=0.05)


def test_matrices_are_worked_on_each_by_itself() -> None:
    some = matrices(3, 5, 7)
    torch.testing.assert_close(orthogonal(some)[1:2], orthogonal(some[1:2]))


def test_nothing_stays_nothing() -> None:
    assert torch.equal(orthogonal(torch.zeros(1, 4, 6)), torch.zeros(1, 4, 6))


def optimizer_of(parameters: list[Tensor], *, weight_decay: float = 0.0, rate: float = 0.1) -> Muon:
    muon = Muon([{"params": parameters}], weight_decay=weight_decay)
    muon.param_groups[0]["lr"] = torch.tensor(rate)
    return muon


def parameters() -> list[Tensor]:
    """Of three shapes with other longer sides, one of them twice."""
    some = [matrices(4, 6), matrices(10, 4), matrices(4, 6) + 1, matrices(5, 5)]
    for one in some:
        one.requires_grad_().grad = matrices(*one.shape) * 0.5 + one.detach()
    return some


def test_a_step_moves_every_direction_alike_by_about_adams_step() -> None:
    """Update and momentum of the first step point the same way: to the gradient, made orthogonal."""
    ours = parameters()
    before = [one.detach().clone() for one in ours]
    optimizer_of(ours, rate=0.1).step()
    for one, start in zip(ours, before, strict=True):
        assert one.grad is not None
        expected = start - 0.1 * 0.2 * max(one.shape) ** 0.5 * orthogonal(one.grad.unsqueeze(0))[0]
        torch.testing.assert_close(one.detach(), expected, rtol=1e-4, atol=1e-4)
        assert (one.detach() - start).square().mean().sqrt().item() == pytest.approx(0.1 * 0.2, rel=0.25)


def test_three_steps_are_the_formula_written_out() -> None:
    """Nesterov's: the direction is the momentum's with the gradient counted once more."""
    ours, rate, weight_decay = parameters(), 0.1, 0.5
    muon = optimizer_of(ours, weight_decay=weight_decay, rate=rate)
    weights = [one.detach().clone() for one in ours]
    momentums = [torch.zeros_like(one) for one in weights]
    for step in range(3):
        for number, one in enumerate(ours):
            gradient = torch.randn(one.shape, generator=torch.Generator().manual_seed(10 * step + number))
            one.grad = gradient.clone()
            momentums[number] = 0.95 * momentums[number] + 0.05 * gradient
            direction = orthogonal((0.95 * momentums[number] + 0.05 * gradient).unsqueeze(0))[0]
            length = 0.2 * max(one.shape) ** 0.5
            weights[number] = (1 - rate * weight_decay) * weights[number] - rate * length * direction
        muon.step()
    for one, weight, momentum in zip(ours, weights, momentums, strict=True):
        torch.testing.assert_close(muon.state[one]["momentum"], momentum)
        torch.testing.assert_close(one.detach(), weight, rtol=1e-4, atol=1e-4)


def test_weights_decay_by_their_rate() -> None:
    ours = parameters()
    before = [one.detach().clone() for one in ours]
    for one in ours:
        one.grad = torch.zeros_like(one)
    optimizer_of(ours, weight_decay=0.5, rate=0.1).step()
    for one, start in zip(ours, before, strict=True):
        torch.testing.assert_close(one.detach(), start * 0.95)


def test_found_inf_leaves_everything_untouched() -> None:
    ours = parameters()
    muon = optimizer_of(ours, weight_decay=0.1)
    muon.step()
    before, momentum = copy.deepcopy(ours), copy.deepcopy([muon.state[one]["momentum"] for one in ours])
    for bad in (torch.nan, torch.inf, -torch.inf):
        for one in ours:
            assert one.grad is not None
            one.grad[0, 0] = bad
        muon.found_inf = torch.ones(())  # type: ignore[attr-defined]
        muon.grad_scale = torch.tensor(bad)  # type: ignore[attr-defined]
        muon.step()
    for one, start, moved in zip(ours, before, momentum, strict=True):
        assert torch.equal(one, start)
        assert torch.equal(muon.state[one]["momentum"], moved)


def test_gradients_are_divided_by_their_scale() -> None:
    made = []
    for scale in (1.0, 4.0):
        ours = parameters()
        muon = optimizer_of(ours)
        muon.grad_scale = torch.tensor(scale)  # type: ignore[attr-defined]
        for one in ours:
            assert one.grad is not None
            one.grad *= scale
        muon.step()
        made.append([muon.state[one]["momentum"] for one in ours])
    torch.testing.assert_close(made[0], made[1])


def test_the_products_between_first_and_last_layer_are_its_own_and_adamw_has_the_rest() -> None:
    model = small_model("biased")
    weights = dict(model.named_parameters())
    hidden = {name for name, one in weights.items() if one.ndim == 2 and name != "inputs.weight_VD"}
    muon, rest = build_optimizers(TrainingConfig(optimizer="muon"), weights, hidden)
    assert isinstance(muon, Muon) and isinstance(rest, torch.optim.AdamW)
    moved = [{id(one) for group in each.param_groups for one in group["params"]} for each in (muon, rest)]
    assert moved[0] == {id(weights[name]) for name in hidden}
    assert moved[0] | moved[1] == {id(one) for one in weights.values()}
    assert not moved[0] & moved[1]
    assert {group["rate"] for group in muon.param_groups} == {"rate"}
    assert {group["rate"] for group in rest.param_groups} == {"rest_rate"}


def test_it_learns_to_reverse() -> None:
    """Words that it has not seen in this order."""
    ours = stepping(optimizer="muon", schedule="linear", steps=200, warmup_steps=20, learning_rate=0.01)
    with toy.one_thread():
        for number in range(1, 201):
            assert ours.take(two_a_row(to_reverse(40, seed=number)), number).finite
        assert share_reversed(ours.model.eval(), to_reverse(50, seed=0)) > 0.9


MUON = toy.QUICK.with_changes(
    model={"dropout": 0.2}, training={"optimizer": "muon", "weight_decay": 0.1, "rest_rate": 0.3}
)


def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with toy.one_thread():
        train_prepared(toy_data, tmp_path / "whole", MUON)
        interrupted(monkeypatch, toy_data, tmp_path / "resumed", MUON, 7)
        train_prepared(toy_data, tmp_path / "resumed", MUON)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_the_rest_learns_at_a_rate_of_its_own(tmp_path: Path, toy_data: Path) -> None:
    """Which reaches the embeddings alone in the first step."""
    weights = {}
    for rate in (0.1, 1.0):
        config = MUON.with_changes(training={"rest_rate": rate, "steps": 1, "validation_sentences": 0})
        with toy.one_thread():
            train_prepared(toy_data, tmp_path / str(rate), config)
        weights[rate] = toy.weights(tmp_path / str(rate))
    differing = {name for name, one in weights[0.1].items() if not torch.equal(one, weights[1.0][name])}
    assert "inputs.weight_VD" in differing
    assert not any(name.endswith(("query.weight", "narrow.weight")) for name in differing)
