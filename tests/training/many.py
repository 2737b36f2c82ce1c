"""Training started as several processes that compute on the CPU, as torchrun starts them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qkv.config import Config, settings
from qkv.data.batch import PairBatch
from qkv.training.loop import _Training

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def arguments(data: Path, run: Path, config: Config) -> list[str]:
    """What `qkv train` is told to train so."""
    plain = dict(settings(Config()))
    settled = ("text.", "data.")
    changes = [
        f"--set={name}={'none' if value is None else value}"
        for name, value in settings(config)
        if value != plain[name] and not name.startswith(settled)
    ]
    return ["train", f"--data={data}", f"--output={run}", *changes]


def environment(**more: str) -> dict[str, str]:
    # A thread each: to the last bit, sums depend on how many there are.
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def start(
    command: list[str], *, processes: int = 2, options: tuple[str, ...] = (), **more: str
) -> subprocess.Popen[str]:
    """torchrun with this command: a module and its arguments, or a file and its arguments."""
    launcher = [*TORCHRUN, "--standalone", f"--nproc-per-node={processes}", *options, *command]
    return subprocess.Popen(launcher, env=environment(**more), stderr=subprocess.PIPE, text=True, cwd=ROOT)


def said_by(process: subprocess.Popen[str]) -> str:
    """What torchrun and its processes said until they ended."""
    try:
        return process.communicate(timeout=600)[1]
    except subprocess.TimeoutExpired:
        # torchrun ends its processes, which outlive it otherwise.
        process.terminate()
        said = process.communicate()[1]
        raise AssertionError(f"it did not end by itself: {said}") from None


def together(data: Path, run: Path, config: Config, **options: Any) -> str:
    """Trains to the end in several processes; what they said."""
    with start(["-m", "qkv", *arguments(data, run, config)], **options) as process:
        said = said_by(process)
    assert process.returncode == 0, said
    return said


def record_sentences(folder: Path) -> None:
    """From here on, this process writes down which rows it sees at every step."""
    sound = _Training.update
    place = folder / f"rank-{os.environ.get('RANK', '0')}"

    def update(training: _Training, batch: PairBatch) -> None:
        rows = [hashlib.sha256(str(row.tolist()).encode()).hexdigest() for row in batch.label_RW]
        with place.open("a") as file:
            file.write(json.dumps([training.step + 1, rows]) + "\n")
        sound(training, batch)

    pytest.MonkeyPatch().setattr(_Training, "update", update)


def sentences(folder: Path) -> dict[int, list[str]]:
    """What was written down: the rows of every step, those of all processes together."""
    found: dict[int, list[str]] = {}
    for part in sorted(folder.iterdir()):
        for line in part.read_text().splitlines():
            step, rows = json.loads(line)
            found.setdefault(step, []).extend(rows)
    return {step: sorted(rows) for step, rows in found.items()}
