"""Fault 1 and 2: a process that is killed at any instant, of training and of a save."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from qkv.checkpoint import step_of
from qkv.run import RunDirectory
from tests import toy
from tests.forked import run, start
from tests.torture.trials import Tally, train

_NUMBERS = 2000
_TIMED_EVERY = 5


def kills_while_training(folder: Path, data: Path, count: int, seed: int = 1) -> Tally:
    """Kills training at random instants; the same call again must end bit-equal to a run that was never killed."""
    tally = Tally("killed (SIGKILL) while training at a random instant: bit-equal weights and log")
    generator = random.Random(seed)
    whole, told = folder / "whole", folder / "told"
    # The server that forks is slow to begin.
    assert run(train, data, folder / "first", told=told) == 0, told.read_text()
    seconds = _seconds(data, whole, told)
    expected, log = toy.weights(whole), toy.reports(whole)
    at: list[int] = []
    while tally.tried < count:
        if tally.tried % _TIMED_EVERY == _TIMED_EVERY - 1:
            # On a machine that has become busier, all instants would lie at the beginning.
            seconds = _seconds(data, folder / f"timed-{tally.tried}", told)
        output = folder / f"killed-{tally.tried}"
        process = start(train, data, output, told=told)
        time.sleep(generator.uniform(0, seconds))
        process.kill()
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        newest = max(map(step_of, RunDirectory(output).checkpoints()), default=0)
        code = run(train, data, output, told=told)
        same = code == 0 and toy.equal(toy.weights(output), expected) and toy.reports(output) == log
        if killed:
            at.append(newest)
            tally.count(same, f"killed after the checkpoint of step {newest}: then exit {code}, see {told}")
        shutil.rmtree(output, ignore_errors=True)
    tally.notes = {"killed after the checkpoints of": f"{len({*at})} different steps"}
    return tally


def _seconds(data: Path, output: Path, told: Path) -> float:
    """How long training takes that is let alone."""
    begun = time.monotonic()
    assert run(train, data, output, told=told) == 0, told.read_text()
    return time.monotonic() - begun


def _tensors(step: int) -> dict[str, dict[str, torch.Tensor]]:
    return {name: {"a": torch.full((_NUMBERS,), float(step))} for name in ("weights", "optimizer")}


def save_next(output: Path) -> None:
    """The save that is killed: it replaces a damaged checkpoint, and removes an old one."""
    run_directory = RunDirectory(output)
    run_directory.save(8, _tensors(8), {"step": 8})
    run_directory.keep_only(run_directory.checkpoints()[-2:])


def _before_save(output: Path) -> None:
    for step in (2, 4):
        RunDirectory(output).save(step, _tensors(step), {"step": step})
    # What was there under this name is damaged, or training would not come to write it.
    (output / "checkpoints" / "step-0000008").mkdir()


def _judge(tally: Tally, output: Path, where: str) -> int:
    """There must be a sound checkpoint, and the next save must work and leave nothing behind."""
    saved = RunDirectory(output).newest_sound_checkpoint()
    found = 0 if saved is None else int(saved.state["step"])
    whole = saved is not None and saved.tensors["optimizer"]["a"].eq(found).all()
    save_next(output)
    left = sorted(path.name for path in (output / "checkpoints").iterdir())
    clean = left == ["step-0000004", "step-0000008"]
    tally.count(found in (4, 8) and bool(whole) and clean, f"killed {where}: step {found} found, {left} left")
    return found


def save_killed_at(output: Path, number: int) -> None:
    """Saves, and is killed right before the call of this number that goes to the file system."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sound = os.fsync

    def fsync(fd: int) -> None:
        count()
        sound(fd)

    pytest.MonkeyPatch().setattr(os, "fsync", fsync)
    kinds = ("open", "os.", "shutil.")
    sys.addaudithook(lambda event, _: count() if event.startswith(kinds) else None)
    save_next(output)


def kills_inside_a_save(folder: Path, every: int = 1) -> Tally:
    """Kills a save before each call of Python's that goes to the file system."""
    tally = Tally("killed inside a save, before each call to the file system: a sound checkpoint, the next save works")
    found = _at_every(tally, folder, range(1, 1000, every), _killed_by_hook)
    tally.notes = {"before the rename": found.count(4), "after": found.count(8)}
    return tally


def kills_inside_a_save_by_strace(folder: Path, every: int = 1) -> Tally:
    """Kills a save on entering each of its system calls, those of the tensors' library included."""
    tally = Tally("killed inside a save, on entering each system call (by strace): likewise")
    found: list[int] = []
    for call in _CALLS:
        killed = partial(_killed_by_strace, call)
        found += _at_every(tally, folder, range(1, 1000, every), killed)
    tally.notes = {"before the rename": found.count(4), "after": found.count(8)}
    return tally


def _at_every(tally: Tally, folder: Path, numbers: range, killed: Callable[[Path, int, Path], bool]) -> list[int]:
    """Kills at one boundary after the other, until a save comes to its end; tells which steps were found then."""
    found: list[int] = []
    for number in numbers:
        output = folder / f"save-{tally.tried}"
        _before_save(output)
        if not killed(output, number, folder / "told"):
            shutil.rmtree(output)
            return found
        found.append(_judge(tally, output, f"at boundary {number} by {killed}"))
        shutil.rmtree(output)
    raise AssertionError("a save does not end")


def _killed_by_hook(output: Path, number: int, told: Path) -> bool:
    code = run(save_killed_at, output, number, told=told)
    assert code in (0, -signal.SIGKILL), told.read_text()
    return code != 0


def _wait_then_save(output: Path, go: Path) -> None:
    end = time.monotonic() + 30
    while not go.exists() and time.monotonic() < end:
        time.sleep(0.002)
    save_next(output)


_CALLS = ("openat", "write", "fsync", "rename", "mkdir", "unlink", "unlinkat", "rmdir", "ftruncate", "chmod", "close")


def _killed_by_strace(call: str, output: Path, number: int, told: Path) -> bool:
    go = output.with_name(output.name + ".go")
    process = start(_wait_then_save, output, go, told=told)
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(process.pid), "-o", os.devnull, "-e", f"inject={call}:signal=SIGKILL:when={number}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    go.touch()
    process.join(60)
    tracer.communicate(timeout=60)
    assert process.exitcode in (0, -signal.SIGKILL), told.read_text()
    go.unlink()
    return process.exitcode != 0
