"""What training does with dropout: two readings that are to agree, and none of it early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from qkv.config import Config
from qkv.data.batch import Packed
from qkv.errors import ConfigError
from qkv.layers.loss import Loss
from qkv.models.encoder_decoder import EncoderDecoder, State
from qkv.prepare import Prepared
from qkv.training import fitting, train_prepared
from qkv.training.footprint import Footprint
from qkv.training.learner import Learner
from qkv.training.objective import Goal, translation_loss
from qkv.training.speed import steps_a_second
from tests import toy
from tests.toy import QUICK
from tests.training.crashing import interrupted
from tests.training.steps import batch, stepping, with_dropout

BOTH = QUICK.with_changes(model={"dropout": 0.3}, training={"agreement": 4.0, "dropout_after": 4, "steps": 8})

NEXT_TO_NONE = 1e-30
"""A dropout that leaves out nothing, but is there."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def loss_of(agreement: float, dropout: float) -> Loss:
    ours = stepping(model=with_dropout(dropout))
    torch.manual_seed(1)
    return translation_loss(ours.model, batch(1), Goal(0.1, agreement))


def test_two_readings_cost_what_they_differ_by() -> None:
    """Where nothing is left out, nothing; else in proportion to the weight, beside a loss that stays what it was."""
    torch.testing.assert_close(loss_of(5.0, dropout=NEXT_TO_NONE), loss_of(0.0, dropout=0.0))
    losses = {weight: loss_of(weight, dropout=0.3) for weight in (1e-9, 2.0, 6.0)}
    assert len({loss.surprise.item() for loss in losses.values()}) == 1
    assert {int(loss.tokens) for loss in losses.values()} == {batch(1).target_tokens}
    more = [(losses[weight].total - losses[1e-9].total).item() for weight in (2.0, 6.0)]
    assert more[0] > 0.01 * losses[2.0].total.item()
    assert more[1] == pytest.approx(3 * more[0], rel=1e-4)


def test_a_row_read_twice_stands_in_two_rows_that_follow_one_another() -> None:
    some = batch(1)
    twice = some.twice()
    for one, both in zip(some.tensors(), twice.tensors(), strict=True):
        assert torch.equal(both[0::2], one)
        assert torch.equal(both[1::2], one)
    assert (twice.source_tokens, twice.target_tokens) == (some.source_tokens, some.target_tokens)


def test_in_four_parts_two_readings_are_the_same_step() -> None:
    """Where nothing is left out: dropout would draw other numbers."""
    whole, parts = (
        stepping(model=with_dropout(NEXT_TO_NONE), agreement=3.0, accumulate=parts).take(batch(1), 1)
        for parts in (1, 4)
    )
    assert whole.total == pytest.approx(parts.total, rel=1e-5)
    assert whole.gradient_norm == pytest.approx(parts.gradient_norm, rel=1e-4)


def test_before_dropout_begins_what_would_be_the_same_twice_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, start = [], EncoderDecoder.start

    def counted(model: EncoderDecoder, source: Packed) -> State:
        read.append(source.ids_RW.size(0))
        return start(model, source)

    monkeypatch.setattr(EncoderDecoder, "start", counted)
    ours = stepping(model=with_dropout(0.3), agreement=3.0, dropout_after=2)
    plain = stepping(model=with_dropout(0.0))
    for number in (1, 2):
        assert ours.take(batch(number), number) == plain.take(batch(number), number)
    assert read == [4] * 4
    ours.take(batch(3), 3)
    assert read[4:] == [8]


def test_steps_are_tried_out_and_timed_with_dropout(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may take twice the memory and the time of those before it begins."""
    seen, begin = [], Learner.begin

    def noted(config: Config, *given: Any) -> Learner:
        seen.append(config.training.dropout_after)
        return begin(config, *given)

    monkeypatch.setattr(Learner, "begin", noted)
    steps_a_second(BOTH, Prepared.open(toy_data), 0.01)
    assert seen == [0]
    assert fitting._with_rows(BOTH, 3).training.dropout_after == 0


def test_dropout_begins_after_its_step_and_not_before() -> None:
    late = stepping(model=with_dropout(0.4), dropout_after=2)
    never, always = stepping(model=with_dropout(0.0)), stepping(model=with_dropout(0.4))
    for number in (1, 2):
        assert late.take(batch(number), number).total == never.take(batch(number), number).total
        # Whoever translates in between tells all parts of a model that it learns again.
        late.model.eval()
        late.model.train()
    always.weights.load({name: one.detach().clone() for name, one in late.weights.exact.items()})
    assert late.take(batch(3), 3).total == always.take(batch(3), 3).total != never.take(batch(3), 3).total


def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_prepared(toy_data, tmp_path / "whole", BOTH)
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", BOTH, 7)
    train_prepared(toy_data, tmp_path / "resumed", BOTH)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_two_readings_take_twice_the_memory_of_one() -> None:
    once, twice = (Footprint.of(BOTH.with_changes(training={"agreement": weight})) for weight in (0.0, 1.0))
    assert twice.row == 2 * once.row


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": {"dropout": 0.0}, "training": {"agreement": 1.0}}, "what dropout does to two readings"),
        ({"training": {"agreement": -1.0}}, r"training\.agreement is -1\.0; it must be at least 0"),
        ({"training": {"dropout_after": -1}}, r"training\.dropout_after is -1; it must be at least 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Config().with_changes(**changes)
