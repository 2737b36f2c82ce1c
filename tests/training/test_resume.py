"""A run that was interrupted ends as if it had not been."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qkv import Translator, checkpoint
from qkv.cli import main
from qkv.errors import CheckpointError, ConfigError
from qkv.prepare import prepare
from qkv.run import RunDirectory
from qkv.settings import to_json
from qkv.training import train, train_prepared
from qkv.training.checkpoints import Checkpoints
from tests import toy
from tests.forked import signalled
from tests.toy import QUICK
from tests.training.crashing import interrupted


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.mark.parametrize("final", ["last", "checkpoints", "moving"])
@pytest.mark.parametrize("before", [2, 6, 9])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, final: str, before: int
) -> None:
    config = QUICK.with_changes(
        model={"dropout": 0.3}, training={"final": final, "steps": 10, "report_every": 3, "moving_average": 0.5}
    )
    train_prepared(toy_data, tmp_path / "whole", config)
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", config, before)
    train_prepared(toy_data, tmp_path / "resumed", config)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_a_killed_run_goes_on_with_the_same_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    settings = {
        "model.width": 16, "model.heads": 2, "model.hidden": 24, "text.vocabulary": 320, "training.steps": 160,
        "training.save_every": 10, "training.final": "moving", "training.device": "cpu",
        "training.tokens_per_batch": 160, "data.row_width": 32, "training.validate_every": 75,
        "training.validation_sentences": 2,
    }  # fmt: skip

    def command(run: Path) -> list[str]:
        changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        return ["train", str(corpus), "--recipe", "tiny", "--output", str(run), *changes]

    assert main(command(tmp_path / "whole")) == 0
    there = tmp_path / "killed" / "checkpoints" / "step-0000030"
    ended = signalled(signal.SIGKILL, there, *command(tmp_path / "killed"), told=tmp_path / "told")
    assert ended == -signal.SIGKILL
    assert not (tmp_path / "killed" / "final").exists()
    capsys.readouterr()
    assert main(command(tmp_path / "killed")) == 0
    assert "going on after step " in capsys.readouterr().err
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "killed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "killed")


def newest(run: Path) -> Path:
    return RunDirectory(run).checkpoints()[-1]


def test_a_finished_run_is_left_as_it_is(run: Path, toy_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (run / "final").iterdir()}
    log = (run / "log.jsonl").read_bytes()
    capsys.readouterr()
    train_prepared(toy_data, run, QUICK)
    assert capsys.readouterr().err == f"{run} is finished; to go on, set training.steps above 12\n"
    assert {path: path.stat().st_mtime_ns for path in (run / "final").iterdir()} == before
    assert (run / "log.jsonl").read_bytes() == log


def test_more_steps_go_on_where_the_run_ended(run: Path, toy_data: Path, tmp_path: Path) -> None:
    longer = QUICK.with_changes(training={"steps": 20})
    train_prepared(toy_data, run, longer)
    train_prepared(toy_data, tmp_path / "whole", longer)
    assert toy.equal(toy.weights(run), toy.weights(tmp_path / "whole"))


def test_a_run_goes_on_in_other_parts_where_there_is_less_memory(tmp_path: Path, toy_data: Path) -> None:
    """Or fewer processes: the batch of a step is the same, and so is what is learned from it."""
    config = QUICK.with_changes(model={"dropout": 0.0}, training={"report_every": 1})
    train_prepared(toy_data, tmp_path / "whole", config)
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"steps": 6}))
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"accumulate": 5}))
    ours, theirs = ([one["loss"] for one in toy.reports(tmp_path / run, "train")] for run in ("run", "whole"))
    assert len(ours) == 12
    assert ours == pytest.approx(theirs, rel=1e-5)


def test_killed_between_its_last_checkpoint_and_its_end_it_ends_anew(
    run: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The final weights of the shorter run are still there, and are not taken for those of the longer."""
    longer = QUICK.with_changes(training={"steps": 16})
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_prepared(toy_data, run, longer)
    assert checkpoint.read(run / "final").state["step"] == 12
    train_prepared(toy_data, run, longer)
    assert checkpoint.read(run / "final").state["step"] == 16


def test_an_interrupted_run_ends_with_the_same_best_weights(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its learning rate rises beyond all measure, so that the best validation is an early one."""
    config = QUICK.with_changes(
        training={
            "steps": 11, "validate_every": 2, "patience": 9, "keep_checkpoints": 1, "average_checkpoints": 1,
            "save_every": 3, "learning_rate": 1.0, "warmup_steps": 10,
        }
    )  # fmt: skip
    train_prepared(toy_data, tmp_path / "whole", config)
    assert checkpoint.read(tmp_path / "whole" / "final").state["weights_of_step"] < 8
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", config, 8)
    train_prepared(toy_data, tmp_path / "resumed", config)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_damaged_final_weights_are_made_anew(run: Path, toy_data: Path) -> None:
    before = toy.weights(run)
    (run / "final" / "weights.safetensors").write_bytes(b"damaged")
    train_prepared(toy_data, run, QUICK)
    assert toy.equal(toy.weights(run), before)


def flip(directory: Path) -> None:
    path = directory / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(directory: Path) -> None:
    path = directory / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def lose(directory: Path) -> None:
    (directory / "state.json").unlink()


def lose_manifest(directory: Path) -> None:
    (directory / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (flip, "weights.safetensors"),
        (truncate, "optimizer.safetensors"),
        (lose, "state.json"),
        (lose_manifest, "manifest.json"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(
    run: Path, toy_data: Path, capsys: pytest.CaptureFixture[str], damage: Any, named: str
) -> None:
    before, log = toy.weights(run), toy.reports(run)
    shutil.rmtree(run / "final")
    damage(newest(run))
    capsys.readouterr()
    train_prepared(toy_data, run, QUICK)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("qkv: warning: ")
    assert "step-0000012" in told[0]
    assert named in told[0]
    assert "going on after step 8" in told
    assert toy.equal(toy.weights(run), before)
    assert toy.reports(run) == log


def test_a_damaged_checkpoint_that_is_not_written_again_goes(run: Path, toy_data: Path) -> None:
    """Or it would be taken for the newest one, and into the mean of the last."""
    shutil.rmtree(run / "final")
    flip(newest(run))
    train_prepared(toy_data, run, QUICK.with_changes(training={"steps": 11, "save_every": 5}))
    assert newest(run).name == "step-0000011"
    assert RunDirectory(run).average_last(4) == [4, 8, 10, 11]


def test_where_all_checkpoints_are_damaged_nothing_is_begun_over(run: Path, toy_data: Path) -> None:
    shutil.rmtree(run / "final")
    for directory in RunDirectory(run).checkpoints():
        flip(directory)
    with pytest.raises(CheckpointError, match=r"all checkpoints in .* are damaged; .* remove them to begin again"):
        train_prepared(toy_data, run, QUICK)
    assert len(RunDirectory(run).checkpoints()) == 3


def test_a_run_of_weights_alone_is_not_begun_over_and_not_called_finished(run: Path, toy_data: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    told = rf"^{run} has weights, but no checkpoint to go on from; use another --output$"
    for steps in (12, 4000):
        with pytest.raises(CheckpointError, match=told):
            train_prepared(toy_data, run, QUICK.with_changes(training={"steps": steps}))
    assert toy.weights(run)


def test_what_a_killed_save_left_is_harmless(run: Path, toy_data: Path) -> None:
    before = toy.weights(run)
    shutil.rmtree(run / "final")
    shutil.rmtree(newest(run))
    half = run / "checkpoints" / "step-0000012.tmp"
    half.mkdir()
    (half / "weights.safetensors").write_bytes(b"half")
    train_prepared(toy_data, run, QUICK)
    assert toy.equal(toy.weights(run), before)
    assert not half.exists()


@pytest.mark.parametrize("half", ['{"kind": "tra', '{"kind": "train", "step": 1}'])
def test_a_line_that_a_crash_left_half_written_goes(run: Path, toy_data: Path, half: str) -> None:
    log = toy.reports(run)
    with (run / "log.jsonl").open("a") as file:
        file.write(half)
    train_prepared(toy_data, run, QUICK)
    assert toy.reports(run) == log


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("model", "dropout", 0.2),
        ("training", "label_smoothing", 0.0),
        ("training", "seed", 2),
        ("training", "optimizer", "adamw"),
        ("training", "schedule", "paper"),
        ("training", "final", "moving"),
    ],
)
def test_other_settings_are_refused(run: Path, toy_data: Path, section: str, name: str, value: float | str) -> None:
    log, config = (run / "log.jsonl").read_bytes(), (run / "config.json").read_bytes()
    with pytest.raises(ConfigError, match=rf"{section}\.{name} was .*, now {value}.*use another --output"):
        train_prepared(toy_data, run, QUICK.with_changes(**{section: {name: value}}))
    assert ((run / "log.jsonl").read_bytes(), (run / "config.json").read_bytes()) == (log, config)


def test_settings_edited_by_hand_are_refused(run: Path, toy_data: Path) -> None:
    """Neither weights nor optimizer would tell: the tensors have the same shapes."""
    config = json.loads((run / "config.json").read_text())
    config["model"]["heads"] = 4
    (run / "config.json").write_text(json.dumps(config))
    for now in (QUICK, QUICK.with_changes(model={"heads": 4})):
        with pytest.raises(
            CheckpointError, match=r"was changed since step-0000012 .*: model\.heads from 2 to 4; change"
        ):
            train_prepared(toy_data, run, now)
    (run / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"model\.heads was 2, now 4"):
        train_prepared(toy_data, run, QUICK.with_changes(model={"heads": 4}))
    train_prepared(toy_data, run, QUICK)


def forget(directory: Path, *names: str) -> None:
    """Makes a checkpoint what a version wrote that did not keep these."""
    saved = checkpoint.read(directory)
    state = {name: value for name, value in saved.state.items() if name not in names}
    checkpoint.write(directory, saved.tensors, state)


def test_a_run_of_an_older_version_goes_on(run: Path, toy_data: Path) -> None:
    for directory in [run / "final", *RunDirectory(run).checkpoints()]:
        forget(directory, "model")
    Translator.load(run)
    train_prepared(toy_data, run, QUICK.with_changes(training={"steps": 14}))
    assert checkpoint.read(run / "final").state["model"]["heads"] == 2


def test_a_setting_that_an_older_version_did_not_know_had_its_default(run: Path) -> None:
    saved = checkpoint.read(run / "final")
    del saved.state["model"]["query_key_norm"]
    checkpoint.write(run / "final", saved.tensors, saved.state)
    Translator.load(run)
    config = QUICK.with_changes(model={"query_key_norm": "rms"})
    (run / "config.json").write_text(to_json(config))
    with pytest.raises(CheckpointError, match=r"model\.query_key_norm from none to rms"):
        Translator.load(run)


def test_settings_may_change_before_anything_is_learned(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, toy_data, tmp_path / "run", QUICK, before=3)
    wider = QUICK.with_changes(model={"width": 20})
    train_prepared(toy_data, tmp_path / "run", wider)
    assert RunDirectory(tmp_path / "run").config().model.width == 20


def test_other_data_is_refused(run: Path, toy_data: Path, tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "other.tsv", toy.pairs(130))
    # With the run's own tokenizer, so that it is the data that is found out.
    other = prepare([corpus], tmp_path / "other", QUICK, tokenizer=run / "tokenizer.model")
    with pytest.raises(CheckpointError, match="was trained on other data"):
        train_prepared(other.directory, run, QUICK)
    different = prepare([corpus], tmp_path / "different", QUICK)
    with pytest.raises(CheckpointError, match="is not the tokenizer of"):
        train_prepared(different.directory, run, QUICK)
    train_prepared(toy_data, run, QUICK)


def test_files_that_changed_are_refused(tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(100))
    short = QUICK.with_changes(training={"steps": 1})
    train([corpus], tmp_path / "run", short)
    toy.write_tsv(corpus, toy.pairs(101))
    with pytest.raises(ConfigError, match="the training files are not the same"):
        train([corpus], tmp_path / "run", short)


def test_two_processes_cannot_train_one_run(run: Path, toy_data: Path) -> None:
    longer = QUICK.with_changes(training={"steps": 14})
    with RunDirectory(run).held(), pytest.raises(ConfigError, match="another process is at work on"):
        train_prepared(toy_data, run, longer)
    train_prepared(toy_data, run, longer)
