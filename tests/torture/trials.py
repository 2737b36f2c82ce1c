"""What the fault tests share: processes that are quickly there and may be killed, and a count of what held."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from qkv.cli import main
from qkv.config import Config
from qkv.training import train_prepared
from tests.toy import QUICK

# A server that has imported everything forks for each process: one is there in milliseconds, not in seconds.
_CONTEXT = multiprocessing.get_context("forkserver")
# The last two are what training imports on its way: kills are to fall into training.
_CONTEXT.set_forkserver_preload([__name__, "torch._dynamo", "sacrebleu"])

CONFIG = QUICK.with_changes(
    model={"dropout": 0.3},
    training={
        "steps": 24, "save_every": 3, "report_every": 4, "validate_every": 12, "validation_sentences": 2,
        "keep_checkpoints": 3, "average_checkpoints": 3, "final": "checkpoints",
    },
)  # fmt: skip
"""A run of a second that saves as often as it can."""


@dataclass
class Tally:
    """How many of the trials of a fault held, and what was seen where one did not."""

    fault: str
    held: int = 0
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def count(self, held: bool, otherwise: str) -> None:
        self.tried += 1
        self.held += held
        if not held:
            self.failures.append(otherwise)

    @property
    def sound(self) -> bool:
        return self.tried > 0 and self.held == self.tried

    def row(self) -> str:
        notes = ", ".join(f"{name} {value}" for name, value in self.notes.items())
        return f"| {self.fault} | {self.held:,} of {self.tried:,} | {notes} |"


def start(function: Callable[..., Any], *arguments: Any, told: Path) -> BaseProcess:
    """A process of its own that calls a function; what it says goes to a file."""
    process = _CONTEXT.Process(target=_child, args=(function, arguments, told))
    process.start()
    return process


def run(function: Callable[..., Any], *arguments: Any, told: Path, seconds: float = 120) -> int:
    """How a process ended that was let alone: 0, a code of the command line, or minus a signal."""
    process = start(function, *arguments, told=told)
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode is not None
    return process.exitcode


def train(data: Path, output: Path, config: Config = CONFIG) -> None:
    train_prepared(data, output, config)


def command(*arguments: str) -> int:
    """The command line, with nothing on standard input."""
    with Path(os.devnull).open() as nothing:
        sys.stdin = nothing
        return main(arguments)


def translate(model: Path, given: Path, made: Path) -> int:
    return command("translate", str(model), "--input", str(given), "--output", str(made))


def _child(function: Callable[..., Any], arguments: tuple[Any, ...], told: Path) -> None:
    with told.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # To the last bit, sums depend on how many threads there are.
    torch.set_num_threads(1)
    code = function(*arguments)
    sys.stdout.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told.with_suffix(".peak").write_text(str(peak))
    sys.exit(code or 0)
