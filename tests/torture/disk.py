"""Fault 5: a disk that is full when a checkpoint is written."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qkv import storage
from qkv.errors import FullDiskError, StorageError
from qkv.run import RunDirectory
from qkv.storage import free_bytes, require_room
from qkv.training import train_prepared
from qkv.training.loop import Training
from tests import toy
from tests.forked import run
from tests.torture.trials import CONFIG, Tally, train

_SIZE = 1 << 21
_CONFIG = CONFIG.with_changes(training={"steps": 15})


@contextlib.contextmanager
def _disk(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def may_mount(place: Path) -> bool:
    """Whether this process may make a small disk: only root may."""
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True, check=False)
    if made.returncode == 0:
        subprocess.run(["umount", str(place)], check=True)
    return made.returncode == 0


def _fill(disk: Path, leave: int) -> None:
    """Takes all that is free but for so many bytes."""
    taken = max(0, free_bytes(disk) - leave)
    with (disk / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, max(taken, 1))


def train_on_a_filling_disk(data: Path, output: Path, leave: int, *, midway: bool, room_again: bool) -> int:
    """Trains; the disk fills before the save of step 6, or once that has begun, and may be free again after step 8."""
    update = Training.update

    def fill_once_begun(path: Path, needed: int) -> None:
        require_room(path, needed)
        if midway and path.name == "step-0000006":
            _fill(output.parent, leave)

    def updated(training: Training, batch: Any) -> None:
        if training.step == 4 and not midway:
            training.checkpoints.look_after(wait=True)
            _fill(output.parent, leave)
        if training.step == 8 and room_again:
            training.checkpoints.look_after(wait=True)
            (output.parent / "filler").unlink()
        update(training, batch)

    patch = pytest.MonkeyPatch()
    patch.setattr(storage, "require_room", fill_once_begun)
    patch.setattr(Training, "update", updated)
    try:
        train_prepared(data, output, _CONFIG)
    except StorageError as error:
        os.write(2, f"{error}\n".encode())
        return error.exit_code
    return 0


def full_disk(folder: Path, data: Path, levels: int) -> Tally:
    """Fills the disk before and in the middle of a save, leaving more or less room."""
    tally = Tally("disk full before or inside a save: old one kept, bytes told, trains on or exits 3, then bit-equal")
    whole = folder / "whole"
    assert run(train, data, whole, _CONFIG, told=folder / "told") == 0
    needed = sum(path.stat().st_size for path in RunDirectory(whole).checkpoints()[-1].iterdir())
    for number in range(levels):
        for midway in (False, True):
            for room_again in (False, True):
                name = f"{number}-{midway}-{room_again}"
                with _disk(folder / name) as disk:
                    output, told = disk / "run", folder / f"{name}.txt"
                    leave = needed * number // levels
                    code = run(_kept, data, output, leave, midway, room_again, told=told)
                    said = told.read_text()
                    newest = RunDirectory(output).newest_sound_checkpoint()
                    kept = newest is not None and newest.state["step"] == (_CONFIG.training.steps if room_again else 3)
                    kept = kept and "the checkpoint of step 3 is untouched" in said
                    told_bytes = "the disk is full: " in said and "bytes, and " in said and "goes on" in said
                    right = code == (0 if room_again else FullDiskError.exit_code) and kept and told_bytes
                    # With room again, the same command ends the run.
                    (disk / "filler").unlink(missing_ok=True)
                    again = run(train, data, output, _CONFIG, told=told)
                    same = again == 0 and toy.equal(toy.weights(output), toy.weights(whole))
                    same = same and toy.reports(output) == toy.reports(whole)
                    tally.count(right and same, f"{leave} bytes left, {name}: exit {code} then {again}; {said}")
    tally.notes = {"bytes of a checkpoint": f"{needed:,}", "left free": f"0 to {needed * (levels - 1) // levels:,}"}
    return tally


def _kept(data: Path, output: Path, leave: int, midway: bool, room_again: bool) -> int:
    return train_on_a_filling_disk(data, output, leave, midway=midway, room_again=room_again)
