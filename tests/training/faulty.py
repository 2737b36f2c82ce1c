"""The command `qkv` with something wrong in one process: `torchrun -m tests.training.faulty FAULT RANK STEPS train …`.

A fault comes before each of these steps, such as 3 or 3,4,5. Where there is none, a folder in their place is told the
sentences of each step. How a process ended, it says at its end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qkv.cli import main
from qkv.data.batch import PairBatch
from qkv.errors import TrainingError
from qkv.training import fitting, objective
from qkv.training.loop import Training
from tests.training.many import record_sentences

PATCH = pytest.MonkeyPatch()
RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def lost() -> None:
    """Only once: the process that takes its place is sound."""
    if ATTEMPT == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def asked() -> None:
    """Asks this process alone to stop."""
    os.kill(os.getpid(), signal.SIGTERM)


def asked_all() -> None:
    """Asks torchrun to stop."""
    os.kill(os.getppid(), signal.SIGTERM)


def refused() -> None:
    raise TrainingError("this process refuses")


def no_number() -> None:
    """The next loss of this process is none."""
    sound = objective.translation_loss

    def bad(*arguments: Any, **options: Any) -> Any:
        PATCH.setattr(objective, "translation_loss", sound)
        loss = sound(*arguments, **options)
        return loss._replace(total=loss.total * float("nan"))

    PATCH.setattr(objective, "translation_loss", bad)


FAULTS: dict[str, Callable[[], None]] = {
    "lost": lost, "asked": asked, "asked all": asked_all, "refused": refused, "no number": no_number,
}  # fmt: skip

fault, rank, steps, *arguments = sys.argv[1:]
sound = Training.update


def update(training: Training, batch: PairBatch) -> None:
    if fault in FAULTS and int(rank) == RANK and str(training.step + 1) in steps.split(","):
        FAULTS[fault]()
    sound(training, batch)


PATCH.setattr(Training, "update", update)
if fault == "none" and steps != "0":
    record_sentences(Path(steps))
if fault == "little memory":
    # A little more than the other has, which has less than there is.
    free = 2 * ((1 << 28) + 8_500_000 + 1_000_000 * (int(rank) != RANK))
    PATCH.setattr(fitting, "free_memory", lambda _: free)
code: object = 1
try:
    code = main(arguments)
except SystemExit as end:
    code = end.code
finally:
    os.write(2, f"process {RANK} ended with {code}\n".encode())
sys.exit(code)
