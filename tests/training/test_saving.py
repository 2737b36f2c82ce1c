"""Training goes on while a checkpoint is written, and what goes wrong with that is told."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from qkv import checkpoint
from qkv.checkpoint import read, step_of
from qkv.errors import CheckpointError, StorageError
from qkv.run import RunDirectory
from qkv.training import train_prepared
from qkv.training.loop import Training
from qkv.training.saving import Keeping, Saver
from tests import toy
from tests.toy import QUICK

KEEPING = Keeping(last=2, best_step=None, ends_at=0, made_of=1, passing=frozenset())


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def test_what_is_written_is_what_was_there_when_saving_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def save(*given: Any) -> None:
        go_on.wait(30)
        save_file(*given)

    monkeypatch.setattr(checkpoint, "save_file", save)
    weights, state = torch.ones(3), {"step": 4, "values": {"loss": 1.0}}
    saver = Saver(RunDirectory(tmp_path))
    saver.begin(4, [("weights", "a", weights)], state, KEEPING)
    assert saver.outcome(wait=False) is None
    assert not RunDirectory(tmp_path).checkpoints()
    weights.zero_()
    state["values"]["loss"] = 2.0  # type: ignore[index]
    go_on.set()
    written = saver.outcome(wait=True)
    assert written is not None and written.step == 4
    saved = read(tmp_path / "checkpoints" / "step-0000004")
    assert torch.equal(saved.tensors["weights"]["a"], torch.ones(3))
    assert saved.state["values"] == {"loss": 1.0}
    assert saver.outcome(wait=True) is None
    saver.close()


def test_training_does_not_wait_for_the_disk(tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint of step 4 is written only when step 7 is taken."""
    go_on = threading.Event()
    sound_update = Training.update

    def save(*given: Any) -> None:
        assert go_on.wait(30), "training waits for the disk"
        save_file(*given)

    def update(training: Training, batch: Any) -> None:
        sound_update(training, batch)
        if training.step == 7:
            assert not RunDirectory(tmp_path / "run").checkpoints()
            go_on.set()

    monkeypatch.setattr(checkpoint, "save_file", save)
    monkeypatch.setattr(Training, "update", update)
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"validate_every": 4}))
    assert go_on.is_set()
    assert [step_of(one) for one in RunDirectory(tmp_path / "run").checkpoints()] == [4, 8, 12]


def test_an_error_while_writing_ends_training(tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("while writing")

    monkeypatch.setattr(checkpoint, "save_file", broken)
    with pytest.raises(ZeroDivisionError, match="while writing"):
        train_prepared(toy_data, tmp_path / "run", QUICK)


def test_training_that_fails_waits_for_what_is_being_written(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_update, failing = Training.update, threading.Event()

    def update(training: Training, batch: Any) -> None:
        if training.step == 5:
            failing.set()
            raise ZeroDivisionError("while training")
        sound_update(training, batch)

    def save(*given: Any) -> None:
        assert failing.wait(60)
        time.sleep(0.3)
        save_file(*given)

    monkeypatch.setattr(checkpoint, "save_file", save)
    monkeypatch.setattr(Training, "update", update)
    with pytest.raises(ZeroDivisionError, match="while training"):
        train_prepared(toy_data, tmp_path / "run", QUICK)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-0000004"]


def test_the_log_is_on_disk_before_the_checkpoint_that_relies_on_it(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that cannot be written lets training go on, but nothing is saved that would not know of its lines."""
    run = tmp_path / "run"
    sound = Training.update

    def update(training: Training, batch: Any) -> None:
        # In place of the log a directory, which nothing can be appended to.
        if training.step == 1:
            (run / "log.jsonl").mkdir()
        if training.step == 6:
            (run / "log.jsonl").rmdir()
        sound(training, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "update", update)
        train_prepared(toy_data, run, QUICK)
    assert [step_of(one) for one in RunDirectory(run).checkpoints()] == [8, 12]
    train_prepared(toy_data, tmp_path / "sound", QUICK)
    assert toy.reports(run) == toy.reports(tmp_path / "sound")


def test_where_the_last_checkpoint_cannot_be_written_the_run_ends_with_the_code_of_a_full_disk(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, config = tmp_path / "run", QUICK.with_changes(training={"validate_every": 4})
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_BESIDE_TENSORS", 1 << 60)
        with pytest.raises(StorageError, match=r"step-0000012 needs 1,152.* bytes, and .* are free; make room") as told:
            train_prepared(toy_data, run, config)
    assert told.value.exit_code == 5
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not saved: the disk is full")]
    assert len(lines) == 3
    assert lines[0].endswith("are free; there is none yet, and training goes on until the next save is due")
    assert not RunDirectory(run).learned
    train_prepared(toy_data, run, config)
    assert toy.weights(run)


def paths(*steps: int) -> list[Path]:
    return [Path(f"step-{step:07}") for step in steps]


@pytest.mark.parametrize(
    ("keeping", "wanted"),
    [
        (KEEPING, (7, 8)),
        (KEEPING._replace(best_step=2), (2, 7, 8)),
        (KEEPING._replace(best_step=3), (7, 8)),
        (KEEPING._replace(ends_at=6, made_of=2), (4, 6, 7, 8)),
        (KEEPING._replace(passing=frozenset({7})), (6, 8)),
        (KEEPING._replace(passing=frozenset({8})), (6, 7, 8)),
        (KEEPING._replace(passing=frozenset({7}), ends_at=8, made_of=3), (4, 6, 8)),
    ],
)
def test_the_last_the_best_and_what_the_end_is_made_of_are_kept(keeping: Keeping, wanted: tuple[int, ...]) -> None:
    assert {*keeping.wanted(paths(2, 4, 6, 7, 8))} == {*paths(*wanted)}


def test_a_checkpoint_of_a_run_with_other_settings_is_refused(tmp_path: Path, toy_data: Path) -> None:
    """Neither its tensors nor its data would tell."""
    for name, seed in (("run", 1), ("other", 2)):
        train_prepared(toy_data, tmp_path / name, QUICK.with_changes(training={"seed": seed}))
    newest = "checkpoints/step-0000012"
    (tmp_path / "run" / newest).rename(tmp_path / "aside")
    (tmp_path / "other" / newest).rename(tmp_path / "run" / newest)
    with pytest.raises(CheckpointError, match=r"step-0000012 was written by a run with .*training\.seed was 2, now 1"):
        train_prepared(toy_data, tmp_path / "run", QUICK)


def test_a_checkpoint_under_another_s_name_is_passed_over(
    tmp_path: Path, toy_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    train_prepared(toy_data, run, QUICK)
    before = toy.weights(run)
    (run / "checkpoints" / "step-0000004").rename(run / "checkpoints" / "step-0000016")
    train_prepared(toy_data, run, QUICK)
    told = capsys.readouterr().err
    assert "step-0000016 is damaged: it holds step 4" in told
    assert toy.equal(toy.weights(run), before)


def test_the_mean_is_made_without_a_damaged_checkpoint(
    toy_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(tmp_path / "run")
    config = QUICK.with_changes(training={"final": "checkpoints", "average_checkpoints": 3, "keep_checkpoints": 3})
    train_prepared(toy_data, run.path, config)
    first, *others = run.checkpoints()
    weights = first / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    shutil.rmtree(run.final)
    capsys.readouterr()
    train_prepared(toy_data, run.path, config)
    told = capsys.readouterr().err
    assert str(first) in told
    assert "the final weights are made without it" in told
    expected = checkpoint.average(others)
    assert toy.equal(read(run.final, weights_only=True).tensors["weights"], expected)
