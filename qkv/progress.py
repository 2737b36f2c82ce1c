"""Progress of long work on standard error: one line that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from typing import TextIO

_REDRAW_SECONDS = 0.1
_PLAIN_SECONDS = 10.0
_CLEAR = "\r\x1b[K"


class Progress:
    """Tells how far a piece of work is: `with Progress("encoding", total=n, unit="pairs") as p: p.advance(k)`."""

    def __init__(self, what: str, *, total: int | None, unit: str, stream: TextIO | None = None, done: int = 0) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._done = self._begun_at = done
        self._begin = self._shown = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            clear(self._stream)

    def advance(self, amount: int, note: str = "") -> None:
        """Counts `amount` more as done, and shows it if the last showing is a while ago."""
        self._done += amount
        now = time.monotonic()
        if now - self._shown >= (_REDRAW_SECONDS if self._live else _PLAIN_SECONDS):
            self._shown = now
            self._show(note)

    def _show(self, note: str) -> None:
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        rate = (self._done - self._begun_at) / elapsed
        parts = [f"{self._what}: {self._done:,}"]
        if self._total is not None:
            parts[0] += f" of {self._total:,}"
        only_one = (self._done if self._total is None else self._total) == 1
        parts[0] += f" {self._unit.removesuffix('s') if only_one else self._unit}"
        # Slow work does move: that is not to read as nothing.
        parts.append(f"{rate:,.{2 if 0 < rate < 1 else 0}f} {self._unit}/s")
        if self._total is not None and rate > 0:
            parts.append(f"{duration(max(self._total - self._done, 0) / rate)} left")
        if note:
            parts.append(note)
        write_line(self._stream, " · ".join(parts), live=self._live)


def tell(message: str) -> None:
    """A line for the user, on standard error."""
    write_line(sys.stderr, message, live=False)


def warn(message: str) -> None:
    """A line that tells of what went wrong where the work goes on."""
    tell(f"qkv: warning: {message}")


def write_line(stream: TextIO, line: str, *, live: bool) -> None:
    """Writes a line that the next one replaces on a terminal (`live`), or a line of its own elsewhere."""
    columns = shutil.get_terminal_size().columns
    _write(stream, _CLEAR + line[: columns - 1] if live else line + "\n")


def clear(stream: TextIO) -> None:
    """Takes the live line away, so that what comes next begins on an empty one."""
    _write(stream, _CLEAR)


def _write(stream: TextIO, text: str) -> None:
    # A reader that has gone, or a log on a full disk, is no reason to stop the work that is told of.
    with contextlib.suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


def duration(seconds: float) -> str:
    """Seconds as a person says them: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
