"""A run that crashes on its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qkv.config import Config
from qkv.training import train_prepared
from qkv.training.loop import Training


class Crash(BaseException):
    """Stands for a crash: nobody catches it."""


def interrupted(
    monkeypatch: pytest.MonkeyPatch, data: Path, run: Path, config: Config, before: int, *, adapt: Path | None = None
) -> None:
    """Trains, and crashes before this step."""
    sound = Training.update

    def update(training: Training, batch: Any) -> None:
        if training.step + 1 == before:
            raise Crash
        sound(training, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "update", update)
        with pytest.raises(Crash):
            train_prepared(data, run, config, adapt=adapt)
