"""A step of training, against the library's own functions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from qkv.data.batch import PairBatch
from qkv.layers.loss import Loss
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training import objective
from qkv.training import step as module
from tests.layers.plain_loss import plain_smoothed_cross_entropy
from tests.models.families import VOCABULARY
from tests.training.steps import batch, stepping, with_dropout

close = torch.testing.assert_close

# With a large epsilon, Adam does not blow rounding up.
SMOOTH: dict[str, Any] = {"epsilon": 0.1, "learning_rate": 0.3}


def librarys_gradient(model: EncoderDecoder, optimizer: torch.optim.Optimizer, some: PairBatch) -> Loss:
    """Leaves what the library finds the gradient of a batch to be, and tells the loss."""
    x, _ = model.read(some.target, model.start(some.source))
    loss = plain_smoothed_cross_entropy(x.flatten(0, 1), model.inputs.weight_VD, some.label_RW.flatten(), smoothing=0.1)
    optimizer.zero_grad()
    torch.autograd.backward(loss.total / some.target_tokens)
    return loss


def test_a_step_is_the_librarys_loss_gradient_and_optimizer() -> None:
    ours, theirs = stepping(**SMOOTH), stepping(**SMOOTH)
    optimizer = torch.optim.Adam(theirs.model.parameters(), lr=0.3, betas=(0.9, 0.98), eps=0.1)
    for number in (1, 2, 3):
        some = batch(number)
        outcome = ours.take(some, number)
        loss = librarys_gradient(theirs.model, optimizer, some)
        norm = nn.utils.get_total_norm([one.grad for one in theirs.model.parameters() if one.grad is not None])
        optimizer.step()
        assert outcome.finite
        assert outcome.total == pytest.approx(loss.total.item(), rel=1e-5)
        assert outcome.surprise == pytest.approx(loss.surprise.item(), rel=1e-5)
        assert outcome.gradient_norm == pytest.approx(norm.item(), rel=1e-4)
    for one, other in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        close(one, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("clip", [0.05, 1e6])
def test_clipping_is_that_of_the_library(clip: float) -> None:
    ours, theirs = stepping(clip=clip, **SMOOTH), stepping(**SMOOTH)
    optimizer = torch.optim.Adam(theirs.model.parameters(), lr=0.3, betas=(0.9, 0.98), eps=0.1)
    for number in (1, 2, 3):
        some = batch(number)
        outcome = ours.take(some, number)
        librarys_gradient(theirs.model, optimizer, some)
        norm = nn.utils.clip_grad_norm_(theirs.model.parameters(), clip)
        optimizer.step()
        # What is told is the norm before clipping.
        assert outcome.gradient_norm == pytest.approx(norm.item(), rel=1e-4)
        assert (outcome.gradient_norm > clip) == (clip < 1)
    for one, other in zip(ours.model.parameters(), theirs.model.parameters(), strict=True):
        close(one, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.03)])
def test_a_step_in_four_parts_is_the_same_step(precision: torch.dtype, tolerance: float) -> None:
    whole = stepping(precision=precision, **SMOOTH)
    parts = stepping(precision=precision, accumulate=4, **SMOOTH)
    before = {name: one.detach().clone() for name, one in whole.weights.exact.items()}
    for number in (1, 2):
        outcomes = [one.take(batch(number), number) for one in (whole, parts)]
        assert outcomes[0].total == pytest.approx(outcomes[1].total, rel=tolerance / 10)
        assert outcomes[0].gradient_norm == pytest.approx(outcomes[1].gradient_norm, rel=tolerance)
    for name, one in whole.weights.exact.items():
        apart = (one - parts.weights.exact[name]).norm()
        assert apart <= tolerance * (one - before[name]).norm()


def with_bad_loss(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """The loss is not a number, or only its gradient is not."""
    sound = objective.translation_loss

    def bad(*arguments: Any, **options: Any) -> Any:
        loss = sound(*arguments, **options)
        if math.isnan(factor):
            return loss._replace(total=loss.total * factor)
        loss.total.register_hook(lambda gradient: gradient * factor)  # type: ignore[no-untyped-call]
        return loss

    monkeypatch.setattr(module, "translation_loss", bad)


@pytest.mark.parametrize(
    ("optimizer", "schedule"),
    [("adam", "constant"), ("adamw", "constant"), ("muon", "constant"), ("adamw", "free"), ("muon", "free")],
)
@pytest.mark.parametrize("factor", [math.nan, math.inf])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_step_that_is_not_finite_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, optimizer: str, schedule: str, factor: float, precision: torch.dtype
) -> None:
    """Neither weights nor what optimizers remember nor the moving average, to the last bit; the next one is sound."""
    ours = stepping(optimizer=optimizer, weight_decay=0.1, clip=1.0, precision=precision, schedule=schedule)
    assert ours.take(batch(1), 1).finite
    before = ours.remembered()
    with monkeypatch.context() as patch:
        with_bad_loss(patch, factor)
        outcome = ours.take(batch(2), 2)
    assert not outcome.finite
    after = ours.remembered()
    assert before.keys() == after.keys()
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert ours.take(batch(3), 3).finite
    changed = ours.remembered()
    assert not torch.equal(changed["exact/inputs.weight_VD"], before["exact/inputs.weight_VD"])
    assert all(one.isfinite().all() for one in changed.values())


def test_a_loss_that_is_not_finite_is_enough_though_its_gradient_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, sound = stepping(), objective.translation_loss
    before = ours.remembered()
    with monkeypatch.context() as patch:
        patch.setattr(
            module, "translation_loss", lambda *given: (loss := sound(*given))._replace(total=loss.total + math.inf)
        )
        outcome = ours.take(batch(1), 1)
    assert math.isfinite(outcome.gradient_norm)
    assert not outcome.finite
    assert all(torch.equal(one, before[f"exact/{name}"]) for name, one in ours.weights.exact.items())


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_half_the_learning_rate_is_half_of_every_weights_move(optimizer: str) -> None:
    """Also of what has a rate of its own."""
    moves = []
    for factor in (1.0, 0.5):
        ours = stepping(optimizer=optimizer, rest_rate=0.3)
        before = ours.remembered()
        ours.step.begin(batch(1), 1, rate_factor=factor)()
        moves.append({name: one.detach() - before[f"exact/{name}"] for name, one in ours.weights.exact.items()})
    for name, whole in moves[0].items():
        close(moves[1][name], whole / 2, rtol=1e-4, atol=1e-6, msg=name)
    assert moves[0]["inputs.weight_VD"].abs().max() > 1e-3


def test_a_first_step_that_is_not_finite_changes_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, fresh = stepping(clip=1.0), stepping(clip=1.0)
    with monkeypatch.context() as patch:
        with_bad_loss(patch, math.inf)
        assert not ours.take(batch(1), 1).finite
    ours.take(batch(2), 2)
    fresh.take(batch(2), 2)
    for name, one in ours.weights.exact.items():
        assert torch.equal(one, fresh.weights.exact[name])


def test_the_moving_average_follows_the_exact_weights() -> None:
    ours = stepping(precision=torch.bfloat16)
    expected = {name: one.detach().clone() for name, one in ours.weights.exact.items()}
    for number in range(1, 4):
        ours.take(batch(number), number)
        decay = min(0.5, (1 + number) / (10 + number))
        expected = {name: decay * one + (1 - decay) * ours.weights.exact[name] for name, one in expected.items()}
    for name, one in expected.items():
        close(ours.averaging.mean[name], one)


def test_the_same_step_is_taken_whatever_came_before() -> None:
    """A step's dropout is its own; the random numbers drawn elsewhere do not matter."""
    totals = []
    for draws in (0, 7):
        ours = stepping(model=with_dropout(0.4))
        torch.rand(draws)
        totals.append([ours.take(batch(1), 5).total, ours.take(batch(1), 6).total])
    assert totals[0] == totals[1]
    assert stepping(model=with_dropout(0.4)).take(batch(1), 6).total != totals[0][0]


def test_batches_are_left_as_they_were_given() -> None:
    ours, first = stepping(), batch(1)
    ids = first.target.ids_RW.clone()
    ours.take(first, 1)
    ours.take(batch(2), 2)
    assert torch.equal(first.target.ids_RW, ids)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_steps_teach(optimizer: str) -> None:
    ours = stepping(optimizer=optimizer)
    some = batch(1)
    totals = [ours.take(some, number).total / some.target_tokens for number in range(1, 41)]
    # By guessing, the mean surprise is that of the vocabulary.
    assert totals[0] > 0.9 * math.log(VOCABULARY)
    assert totals[-1] < 0.5 * totals[0]
