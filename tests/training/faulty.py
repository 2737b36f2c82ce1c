"""The command `qkv` with something wrong in one process: `torchrun faulty.py FAULT STEP train ...`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from qkv.cli import main
from qkv.data.batch import PairBatch
from qkv.errors import TrainingError
from qkv.training import objective
from qkv.training.loop import _Training

RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def lost() -> None:
    """Only once: the process that takes its place is sound."""
    if ATTEMPT == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def asked() -> None:
    """Asks this process alone to stop."""
    os.kill(os.getpid(), signal.SIGTERM)


def refused() -> None:
    raise TrainingError("this process refuses")


def no_number() -> None:
    """The next loss of this process is none."""
    sound = objective.translation_loss

    def bad(*arguments: Any, **options: Any) -> Any:
        objective.translation_loss = sound
        loss = sound(*arguments, **options)
        return loss._replace(total=loss.total * float("nan"))

    objective.translation_loss = bad


FAULTS: dict[str, Callable[[], None]] = {"lost": lost, "asked": asked, "refused": refused, "no number": no_number}

fault, step, *arguments = sys.argv[1:]
sound = _Training.update


def update(training: _Training, batch: PairBatch) -> None:
    if RANK == 1 and training.step + 1 == int(step):
        FAULTS[fault]()
    sound(training, batch)


_Training.update = update  # type: ignore[assignment, method-assign]
sys.exit(main(arguments))
