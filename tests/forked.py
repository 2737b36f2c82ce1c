"""Processes of their own that are there in milliseconds, not in seconds, and may be killed."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from qkv.cli import main

# A server that has imported everything forks for each process.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([
    __name__, "tests.toy",
    # What training imports on its way: kills are to fall into training.
    "torch._dynamo", "sacrebleu", "torch.distributed.fsdp", "torch.distributed.launcher.api",
])  # fmt: skip


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


def signalled(signal: int, there: Path, *arguments: str, told: Path, seconds: float = 100) -> int:
    """How the command line ended that was sent a signal as soon as a path was there."""
    process, end = start(command, *arguments, told=told), time.monotonic() + seconds
    assert process.pid is not None
    while not there.exists():
        assert process.is_alive(), f"it ended with {process.exitcode} before {there.name} was there: {told.read_text()}"
        assert time.monotonic() < end, f"no {there.name} in {seconds} s: {told.read_text()}"
        time.sleep(0.002)
    os.kill(process.pid, signal)
    process.join(seconds)
    assert process.exitcode is not None, f"it went on: {told.read_text()}"
    return process.exitcode


def command(*arguments: str) -> int:
    """The command line, with nothing on standard input."""
    with Path(os.devnull).open() as nothing:
        sys.stdin = nothing
        return main(arguments)


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
