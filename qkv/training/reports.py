"""What a run tells while it trains: a progress line for people, JSON lines for programs, TensorBoard if asked."""

from __future__ import annotations

import errno
import importlib.util
import json
import math
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from qkv.errors import MissingExtraError, StorageError
from qkv.progress import clear, duration, write_line
from qkv.storage import append_regular, explained, read_regular, sync, write_atomically

_LARGEST_LOG = 1 << 30
_REDRAW_SECONDS = 0.2
_PLAIN_SECONDS = 30.0
"""Silence for longer than that looks as if nothing went on."""


class Log:
    """One JSON object a line in the run directory; a resumed run cuts off what its checkpoint does not know of."""

    def __init__(
        self,
        path: Path,
        since_step: int,
        rollbacks: int,
        *,
        unvalidated: bool,
        tensorboard: bool,
        silent: bool = False,
    ) -> None:
        self._path = path
        self._silent = silent
        """Whether another process writes the same."""
        self._unwritten = b""
        self._board = _summary_writer(path.parent, since_step) if tensorboard and not silent else None
        if not silent:
            self._cut(since_step, rollbacks, unvalidated=unvalidated)

    def write(self, kind: str, step: int, **values: Any) -> None:
        if self._silent:
            return
        self._unwritten += (json.dumps({"kind": kind, "step": step, **values}) + "\n").encode()
        # A full disk ends no training: the line waits for room, and no checkpoint is written before it.
        with suppress(StorageError):
            self._flush()
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def sync(self) -> None:
        """Returns when all that was written is safely on disk."""
        with explained(self._path, len(self._unwritten)):
            self._flush()
            if self._path.exists():
                sync(self._path)

    def _flush(self) -> None:
        """Appends what was not written yet, all of it or nothing."""
        if not self._unwritten:
            return
        with explained(self._path, len(self._unwritten)), append_regular(self._path) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                if file.write(self._unwritten) < len(self._unwritten):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                file.truncate(end)
                raise
        self._unwritten = b""

    def close(self) -> None:
        if self._board is not None:
            self._board.close()

    def _cut(self, since_step: int, rollbacks: int, *, unvalidated: bool) -> None:
        """Drops reports of what will be done again, and a line that a crash left half written."""
        if not self._path.exists():
            return
        try:
            written = read_regular(self._path, _LARGEST_LOG).decode(errors="replace")
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read {self._path}: {error}; move it away") from error
        kept = []
        for line in written.splitlines(keepends=True):
            try:
                report = json.loads(line)
                known = report["step"] <= since_step and report.get("rollback", 0) <= rollbacks
                # Why it stopped is of no matter once it goes on.
                known = known and report["kind"] != "stopped"
                known = known and not (unvalidated and (report["kind"], report["step"]) == ("validation", since_step))
            except (ValueError, KeyError, TypeError):
                continue
            if line.endswith("\n") and known:
                kept.append(line)
        write_atomically(self._path, "".join(kept).encode())


class Window:
    """What was summed up since the last report; part of a checkpoint, so that a resumed run reports the same."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        nothing = {"total": 0.0, "surprise": 0.0, "target_tokens": 0, "tokens": 0, "seconds": 0.0, "idle": 0.0}
        self.values: dict[str, float] = {**nothing, **state.get("values", {})}
        self.last: dict[str, float] = state.get("last", {})
        """What the last good step was like."""

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.values[name] += value

    def summary(self) -> dict[str, float]:
        """Means over the target tokens, real tokens of both sides a second, and the last step."""
        tokens = max(1, self.values["target_tokens"])
        return {
            "loss": self.values["total"] / tokens,
            "nll": self.values["surprise"] / tokens,
            "idle": self.values["idle"] / max(self.values["seconds"], 1e-9),
            "tokens_per_second": self.values["tokens"] / max(self.values["seconds"], 1e-9),
            **self.last,
        }

    def state(self) -> dict[str, Any]:
        return {"values": self.values, "last": self.last}


class ProgressLine:
    """A line that redraws itself on a terminal; elsewhere, a plain line a report, and one where reports are rare."""

    def __init__(self, steps: int, stream: TextIO | None = None, *, silent: bool = False) -> None:
        self._steps = steps
        self._silent = silent
        """Whether another process says the same."""
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._begun: tuple[float, int] | None = None
        self._shown = time.monotonic()

    def say(self, message: str) -> None:
        """A line that stays."""
        if self._silent:
            return
        if self._live:
            clear(self._stream)
        write_line(self._stream, message, live=False)

    def step(self, step: int, values: dict[str, float], *, report: bool) -> None:
        """Shows where training stands: at every report, on a terminal as often as an eye can follow, and before whoever
        waits begins to wonder."""
        now = time.monotonic()
        self._begun = self._begun or (now, step)
        patience = _REDRAW_SECONDS if self._live else _PLAIN_SECONDS
        if self._silent or (not report and now - self._shown <= patience):
            return
        self._shown = now
        began, first = self._begun
        rate = values["learning_rate"]
        parts = [f"step {step:,} of {self._steps:,}", f"loss {values['loss']:.3f}", f"rate {rate:.2e}"]
        if step > first:
            parts.append(f"{duration((now - began) / (step - first) * (self._steps - step))} left")
        # A narrow terminal cuts the line: what is asked for most comes first.
        parts += [f"{values['tokens_per_second']:,.0f} tokens/s", f"epoch {values['epoch']:.2f}"]
        write_line(self._stream, " · ".join(parts), live=self._live)

    def validation(self, step: int, values: dict[str, float]) -> None:
        bleu = f" · BLEU {values['bleu']:.1f} (greedy)" if "bleu" in values else ""
        when = f"after step {step:,}" if step else "before the first step"
        self.say(f"validation {when}: loss {values['loss']:.3f} · perplexity {values['perplexity']:.2f}{bleu}")

    def close(self) -> None:
        if self._live:
            clear(self._stream)


def perplexity(nll: float) -> float:
    """How many equally likely tokens the model hesitates between."""
    return math.exp(min(nll, 700.0))


def require_tensorboard() -> None:
    if importlib.util.find_spec("tensorboard") is None:
        raise MissingExtraError("training.tensorboard needs", "TensorBoard", "tensorboard")


def _summary_writer(directory: Path, since_step: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(directory / "tensorboard"), purge_step=since_step + 1)
