"""What came out, as a table in Markdown for people and as values for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError
from qkv.storage import require_writable, write_atomically


@dataclass(frozen=True)
class Report:
    """A table, what has to be known to read it, and the same as plain values."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    values: Any
    notes: Sequence[str] = ()
    failed: Sequence[str] = ()
    """What could not be done."""
    left: Sequence[str] = ()
    """What there was no time for."""

    @property
    def text(self) -> str:
        widths = [max(len(row[place]) for row in (self.columns, *self.rows)) for place in range(len(self.columns))]

        def line(cells: Sequence[str]) -> str:
            first, *others = (
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            return f"| {' | '.join([first, *others])} |"

        rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
        lines = [self.title, "", line(self.columns), line(rule), *map(line, self.rows), ""]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)]) + "\n"

    def write(self, path: Path) -> None:
        """Writes the table to a file, and its values beside it as JSON."""
        require_place(path)
        write_atomically(path, self.text.encode())
        values = json.dumps(self.values, indent=2, ensure_ascii=False) + "\n"
        write_atomically(path.with_suffix(".json"), values.encode())


def require_place(path: Path) -> None:
    """Refuses a file to which no table can be written; to be asked before there is one."""
    if path.suffix == ".json":
        raise ConfigError(
            f"{path} would have both the table and its values, which are written beside it as JSON; name the table "
            f"{path.with_suffix('.md')}, and both are there"
        )
    require_writable(path)
    require_writable(path.with_suffix(".json"))


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def difference(value: float | None, base: float | None, digits: int = 2) -> str:
    """How much more than base, with its sign."""
    return "–" if value is None or base is None else f"{value - base:+.{digits}f}"
