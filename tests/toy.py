"""A toy language that is learned in seconds: each word backwards, and the words in reversed order."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from qkv import checkpoint
from qkv.cli import main
from qkv.config import Config
from qkv.recipes import recipe
from qkv.training import train

WORDS = [first + second for first in ("ba", "ko", "ri", "ne", "lu") for second in ("sa", "ti", "mo", "du")]

LEARNS = recipe("tiny").with_changes(
    text={"vocabulary": 330},
    training={"steps": 300, "tokens_per_batch": 1024, "warmup_steps": 30, "save_every": 100, "validate_every": 100},
)
"""What learns the toy language: the tiny recipe with the vocabulary of the toy, and half as many steps and tokens."""

QUICK = Config().with_changes(
    model={"width": 16, "heads": 2, "hidden": 24, "encoder_layers": 1, "decoder_layers": 2, "residual": "pre"},
    text={"vocabulary": 320},
    data={"row_width": 32, "held_out": 10},
    training={
        "steps": 12,
        "tokens_per_batch": 160,
        "schedule": "constant",
        "learning_rate": 1e-2,
        "warmup_steps": 3,
        "final": "last",
        "save_every": 4,
        "validate_every": 6,
        "validation_sentences": 2,
        "report_every": 3,
        "device": "cpu",
    },
)
"""What goes through everything a run does, and learns little."""


def pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Distinct sentences of two to six words, and their translations."""
    generator = random.Random(seed)
    sources: dict[str, None] = {}
    while len(sources) < count:
        sources[" ".join(generator.choices(WORDS, k=generator.randint(2, 6)))] = None
    return [(source, source[::-1]) for source in sources]


def write_tsv(path: Path, some: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in some), encoding="utf-8")
    return path


def held_out() -> list[tuple[str, str]]:
    """Pairs that the trained toy run has never seen."""
    return pairs(3100)[3000:]


def trained_once(folders: pytest.TempPathFactory) -> Path:
    """A run that has learned the toy language; however many processes ask for it, one of them trains it."""
    base = folders.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "toy"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "run" / "final").is_dir():
            with one_thread():
                train([write_tsv(folder / "corpus.tsv", pairs(3000))], folder / "run", LEARNS)
    return folder / "run"


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """For a model this small several threads lose time; and to the last bit, sums depend on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weights(run: Path) -> dict[str, Tensor]:
    """The final weights of a run."""
    return checkpoint.read(run / "final").tensors["weights"]


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether all tensors are the same to the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def reports(run: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """What a run has logged, without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    clock = ("seconds", "tokens_per_second")
    some = [line for line in lines if kind in (None, line["kind"])]
    return [{name: value for name, value in line.items() if name not in clock} for line in some]


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of the output; only a line feed ends one."""
        return self.out.decode().split("\n")[:-1]


class Command:
    """The command line, run in this process: `command("translate", run, given=b"a\\n").out`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]) -> None:
        self._monkeypatch = monkeypatch
        self._captured = captured

    def __call__(self, *arguments: object, given: bytes = b"") -> Ran:
        self._captured.readouterr()
        with self._monkeypatch.context() as patch:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = int(end.code or 0)
        out, err = self._captured.readouterr()
        return Ran(code, out, err.decode())
