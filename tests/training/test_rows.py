"""How a run lays out and counts its rows: their width, and batches that grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qkv.errors import ConfigError
from qkv.prepare import Prepared
from qkv.training import train_prepared
from qkv.training.feeding import batches_of
from tests import toy
from tests.toy import QUICK
from tests.training.crashing import interrupted
from tests.training.many import together


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.mark.parametrize("width", [8, 48])
def test_rows_of_another_width_train_and_all_held_out_pairs_are_tried(
    tmp_path: Path, toy_data: Path, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config = QUICK.with_changes(training={"row_width": width, "tokens_per_batch": 192, "steps": 6})
    train_prepared(toy_data, tmp_path / "run", config)
    prepared = Prepared.open(toy_data)
    rows, held_out = (batches_of(config, prepared, name) for name in ("train", "valid"))
    assert rows.of_step(0).label_RW.shape == (192 // width, width)
    assert held_out.left_out == 0
    assert held_out.rows.pairs.size == 10
    told = capsys.readouterr().err
    assert f"rows of {width} positions" in told
    assert (rows.left_out > 0) == (width == 8) == (f"{rows.left_out:,} pairs are longer than a row" in told)
    assert toy.reports(tmp_path / "run", "validation")


GROWING = QUICK.with_changes(
    model={"dropout": 0.3},
    training={"ramp_steps": 6, "ramp_sizes": 3, "steps": 10, "save_every": 2, "report_every": 1},
)
"""Batches of one row, of two and of five."""


@pytest.mark.parametrize("before", [3, 5, 8])
def test_with_growing_batches_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    train_prepared(toy_data, tmp_path / "whole", GROWING)
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", GROWING, before)
    train_prepared(toy_data, tmp_path / "resumed", GROWING)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_a_step_of_a_growing_batch_is_counted_and_taken_as_a_run_of_that_size_would(
    tmp_path: Path, toy_data: Path
) -> None:
    """The first three steps are those of a run whose batches all have one row, and later ones have more tokens."""
    train_prepared(toy_data, tmp_path / "growing", GROWING)
    small = GROWING.with_changes(training={"ramp_steps": 0, "tokens_per_batch": 32, "steps": 3})
    train_prepared(toy_data, tmp_path / "small", small)
    growing, first = (toy.reports(tmp_path / run, "train") for run in ("growing", "small"))
    assert growing[:3] == first
    rows = len(batches_of(GROWING, Prepared.open(toy_data), "train").rows)
    # How much was seen when each of them was done.
    assert [one["epoch"] * rows for one in growing] == pytest.approx([1, 2, 3, 5, 7, 9, 14, 19, 24, 29])
    assert [one["learning_rate"] for one in growing] == pytest.approx(
        [1e-2 * min(1, step / 3) for step in range(1, 11)]
    )


def test_two_processes_grow_their_batches_and_read_them_twice_as_one_does(tmp_path: Path, toy_data: Path) -> None:
    """Before dropout begins, whose numbers each of them draws for itself."""
    config = GROWING.with_changes(training={"tokens_per_batch": 288, "agreement": 4.0, "dropout_after": 10})
    train_prepared(toy_data, tmp_path / "alone", config)
    together(toy_data, tmp_path / "run", config)
    ours, theirs = ([one["loss"] for one in toy.reports(tmp_path / run, "train")] for run in ("run", "alone"))
    assert len(ours) == 10
    assert ours == pytest.approx(theirs, rel=1e-5)


def test_a_ramp_of_too_many_sizes_is_refused(toy_data: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"ramp_sizes 4 begins with batches of 0 rows, too few for 1 parts; have fewer"
    ):
        GROWING.with_changes(training={"ramp_sizes": 4})
    # How far a ramp reaches is part of what was learned so far.
    train_prepared(toy_data, tmp_path / "run", GROWING)
    with pytest.raises(ConfigError, match=r"training\.ramp_steps was 6, now 8"):
        train_prepared(toy_data, tmp_path / "run", GROWING.with_changes(training={"ramp_steps": 8, "steps": 12}))
