"""What the fault tests share: what they train and translate, and a count of what held."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.config import Config
from qkv.training import train_prepared
from tests.forked import command
from tests.toy import QUICK

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


def train(data: Path, output: Path, config: Config = CONFIG) -> None:
    train_prepared(data, output, config)


def translate(model: Path, given: Path, made: Path) -> int:
    return command("translate", str(model), "--input", str(given), "--output", str(made))
