"""A run directory that was handed over can do no harm when training goes on in it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qkv.errors import CheckpointError, StorageError, TextError
from qkv.run import RunDirectory
from qkv.training import train_prepared
from tests import toy
from tests.torture.hostile import put
from tests.toy import QUICK

LONGER = QUICK.with_changes(training={"steps": 16})


@pytest.mark.parametrize("name", ["log.jsonl", "config.json", "log.jsonl.tmp", "config.json.tmp"])
def test_no_link_leads_it_to_other_files(run: Path, toy_data: Path, tmp_path: Path, name: str) -> None:
    notes = tmp_path / "notes.txt"
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(notes)
    notes.write_bytes(b"precious\n")
    if name == "config.json":
        # What it links to is no config, and stays what it is.
        with pytest.raises(CheckpointError):
            train_prepared(toy_data, run, LONGER)
    else:
        train_prepared(toy_data, run, LONGER)
        assert toy.reports(run, "train")[-1]["step"] == 16
    assert notes.read_bytes() == b"precious\n"


@pytest.mark.parametrize(("name", "harm"), [("lock", "a link"), ("lock", "a pipe"), ("tokenizer.model", "a pipe")])
def test_what_is_locked_or_compared_is_a_file_of_the_run(
    run: Path, toy_data: Path, tmp_path: Path, name: str, harm: str
) -> None:
    (run / name).unlink()
    {"a link": lambda path: path.symlink_to(tmp_path / "new"), "a pipe": os.mkfifo}[harm](run / name)
    with pytest.raises((CheckpointError, StorageError), match=re.escape(str(run / name))):
        train_prepared(toy_data, run, LONGER)
    assert not (tmp_path / "new").exists()


def test_a_link_to_sound_settings_is_replaced_and_not_followed(run: Path, toy_data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    shutil.copy(run / "config.json", kept)
    before = kept.read_bytes()
    (run / "config.json").unlink()
    (run / "config.json").symlink_to(kept)
    train_prepared(toy_data, run, LONGER)
    assert kept.read_bytes() == before
    assert not (run / "config.json").is_symlink()


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(8 << 30)


HARM: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "8 GB": sparse,
}


@pytest.mark.parametrize("name", ["config.json", "log.jsonl", "checkpoints/step-0000012/manifest.json"])
@pytest.mark.parametrize("harm", HARM)
def test_what_is_no_file_of_a_sane_size_is_not_read(run: Path, toy_data: Path, name: str, harm: str) -> None:
    (run / name).unlink()
    HARM[harm](run / name)
    if name.startswith("checkpoints"):
        # It is damaged, and the one before it is not.
        train_prepared(toy_data, run, LONGER)
        assert toy.reports(run, "train")[-1]["step"] == 16
    else:
        with pytest.raises((CheckpointError, StorageError), match=r"it is not a file|it is larger than"):
            train_prepared(toy_data, run, LONGER)


def test_what_cannot_be_tidied_away_ends_no_training(run: Path, toy_data: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "checkpoints" / "step-0000004.tmp").write_text("in the way")
    (run / "checkpoints" / "step-9999999").symlink_to(tmp_path / "elsewhere")
    (run / "checkpoints" / "step-0000001").write_text("no directory")
    train_prepared(toy_data, run, LONGER)
    assert toy.reports(run, "train")[-1]["step"] == 16
    assert (tmp_path / "elsewhere").is_dir()


@pytest.mark.parametrize(
    "change",
    [
        {"window": 3}, {"watch": []}, {"rate_factor": "0.5"}, {"passing": "12"}, {"best_loss": "low"}, {"model": 1},
        {"seconds": None}, {"settings": [1]}, {"step": "12"},
    ],
)  # fmt: skip
def test_a_state_of_other_kinds_is_a_damaged_one(run: Path, toy_data: Path, change: dict[str, Any]) -> None:
    """Though its manifest vouches for it."""
    newest = RunDirectory(run).checkpoints()[-1]
    state = json.loads((newest / "state.json").read_text())
    put(newest, "state.json", json.dumps({**state, **change}).encode())
    train_prepared(toy_data, run, LONGER)
    assert toy.reports(run, "train")[-1]["step"] == 16


@pytest.mark.parametrize("harm", [*HARM, "deep"])
def test_prepared_data_that_says_what_no_data_does_is_refused(tmp_path: Path, toy_data: Path, harm: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(toy_data, data)
    (data / "prepared.json").unlink()
    (HARM | {"deep": lambda path: path.write_text("[" * 100_000)})[harm](data / "prepared.json")
    with pytest.raises(TextError, match=r"prepared\.json is damaged; remove"):
        train_prepared(data, tmp_path / "run", QUICK)
