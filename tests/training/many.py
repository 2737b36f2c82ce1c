"""Training started as several processes that compute on the CPU, as torchrun starts them."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.settings import settings
from qkv.training.loop import Training
from tests.forked import run

ROOT = Path(__file__).parents[2]
_SECONDS = 600


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


Ended = tuple[int, str]
"""The exit code of a launcher, and what it and its processes said."""


def torchrun(*module: str, processes: int = 2, restarts: int = 0) -> Ended:
    """`torchrun -m` a module and its arguments, as users start it; each process imports torch, which takes seconds."""
    options = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
    # A thread each: to the last bit, sums depend on how many there are.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    launcher = [sys.executable, "-m", "torch.distributed.run", *options, "-m", *module]
    with subprocess.Popen(launcher, env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            said = process.communicate(timeout=_SECONDS)[1]
        except subprocess.TimeoutExpired:
            # torchrun ends its processes, which outlive it otherwise.
            process.terminate()
            raise AssertionError(f"it did not end by itself: {process.communicate()[1]}") from None
    return process.returncode, said


def forked(*module: str, processes: int = 2, restarts: int = 0) -> Ended:
    """The same, by the same agent, but all processes are forked from one that has imported everything."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        code = run(_launch, module, processes, restarts, told=told, seconds=_SECONDS)
        return code, told.read_text()


def _launch(module: tuple[str, ...], processes: int, restarts: int) -> None:
    """What torchrun does with its arguments, and `--standalone`."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        start_method="fork",
    )
    elastic_launch(config, _as_main)(*module)


def _as_main(module: str, *arguments: str) -> None:
    """What `python -m` does."""
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def together(data: Path, run: Path, config: Config, *, by: Callable[..., Ended] = forked, processes: int = 2) -> str:
    """Trains to the end in several processes; what they said."""
    code, said = by("qkv", *arguments(data, run, config), processes=processes)
    assert code == 0, said
    return said


def record_sentences(folder: Path) -> None:
    """From here on, this process writes down which rows it sees at every step."""
    sound = Training.update
    place = folder / f"rank-{os.environ.get('RANK', '0')}"

    def update(training: Training, batch: PairBatch) -> None:
        rows = [hashlib.sha256(str(row.tolist()).encode()).hexdigest() for row in batch.label_RW]
        with place.open("a") as file:
            file.write(json.dumps([training.step + 1, rows]) + "\n")
        sound(training, batch)

    pytest.MonkeyPatch().setattr(Training, "update", update)


def sentences(folder: Path) -> dict[int, list[str]]:
    """What was written down: the rows of every step, those of all processes together."""
    found: dict[int, list[str]] = {}
    for part in sorted(folder.iterdir()):
        for line in part.read_text().splitlines():
            step, rows = json.loads(line)
            found.setdefault(step, []).extend(rows)
    return {step: sorted(rows) for step, rows in found.items()}
