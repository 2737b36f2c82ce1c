"""Checkpoints that are written while training goes on, and which of them are kept."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from qkv.checkpoint import step_of
from qkv.run import RunDirectory


class Keeping(NamedTuple):
    """Which checkpoints are needed still."""

    last: int
    """So many of the newest."""
    best_step: int | None
    """That of the best validation, where it was saved."""
    ends_at: int
    """The step whose weights the run would end with now."""
    made_of: int
    """How many checkpoints up to that one those weights are made of."""
    passing: frozenset[int]
    """Those of steps where training only stopped, or was best, between the saves of the rest."""

    def lasting(self, checkpoints: Sequence[Path]) -> list[Path]:
        return [one for one in checkpoints if step_of(one) not in self.passing]

    def final(self, checkpoints: Sequence[Path]) -> list[Path]:
        """What the final weights are made of: the last checkpoints up to the step the run ends at."""
        lasting = self.lasting(checkpoints)
        if self.ends_at in map(step_of, lasting):
            lasting = [one for one in lasting if step_of(one) <= self.ends_at]
        return lasting[-self.made_of :]

    def wanted(self, checkpoints: Sequence[Path]) -> list[Path]:
        """All that outlive the newest, which may be one to go on from and no more."""
        best = [one for one in checkpoints if step_of(one) == self.best_step]
        return [checkpoints[-1], *self.lasting(checkpoints)[-self.last :], *self.final(checkpoints), *best]


class Written(NamedTuple):
    """A checkpoint that is safely on disk."""

    step: int
    seconds: float
    """How long that took, from the first copied tensor."""


class Saver:
    """Writes one checkpoint at a time; training waits only while its tensors are copied to host memory."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saver")
        self._writing: Future[Written] | None = None

    def begin(
        self, step: int, tensors: Iterable[tuple[str, str, Tensor]], state: Mapping[str, Any], keeping: Keeping
    ) -> None:
        """Copies everything, then returns; what came of the checkpoint before must have been asked for."""
        assert self._writing is None
        begun = time.monotonic()
        copies: dict[str, dict[str, Tensor]] = {}
        for group, name, tensor in tensors:
            # A CPU's tensors too: the next step writes over them.
            copies.setdefault(group, {})[name] = tensor.detach().to("cpu", copy=True)
        self._writing = self._thread.submit(self._write, step, copies, copy.deepcopy(state), keeping, begun)

    def outcome(self, *, wait: bool) -> Written | None:
        """What came of the checkpoint begun last, once; raises what went wrong. None where there is none to tell of,
        or not yet."""
        if self._writing is None or not (wait or self._writing.done()):
            return None
        writing, self._writing = self._writing, None
        return writing.result()

    def close(self) -> None:
        """Waits until nothing is being written any more."""
        self._thread.shutdown(wait=True)

    def _write(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        state: Mapping[str, Any],
        keeping: Keeping,
        begun: float,
    ) -> Written:
        self._run.save(step, tensors, state)
        self._run.keep_only(keeping.wanted(self._run.checkpoints()))
        return Written(step, time.monotonic() - begun)
