"""Work spread over processes: results in order, few chunks in flight, nothing left running afterwards."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, TypeVar

from qkv.errors import StorageError

Task = TypeVar("Task")
Result = TypeVar("Result")

_IN_FLIGHT = 3


class _DeafProcess(SpawnProcess):
    """A process that never hears Ctrl-C: the parent does, and ends its workers itself."""

    def start(self) -> None:
        # What is blocked here stays blocked in the child, from its first instruction on.
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)


class _Context(SpawnContext):
    Process = _DeafProcess


class Workers:
    """As many processes as asked for; one worker is this process itself, which small work is quickest in."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        if self.count > 1:
            self._executor = ProcessPoolExecutor(self.count, _Context(), initializer=_leave_with_parent)
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """The results in the order of the tasks, which are taken no faster than they are worked off."""
        if self._executor is None:
            yield from map(function, tasks)
            return
        waiting: deque[Future[Result]] = deque()
        with _explained():
            for task in tasks:
                waiting.append(self._executor.submit(function, task))
                if len(waiting) >= _IN_FLIGHT * self.count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def run_apart(function: Callable[..., Any], *arguments: Any) -> None:
    """Runs a long call into foreign code in a process of its own, which can be ended while it computes."""
    context = _Context()
    receiving, sending = context.Pipe(duplex=False)
    process = _DeafProcess(target=_send_outcome, args=(sending, function, arguments), daemon=True)
    process.start()
    sending.close()
    try:
        outcome = receiving.recv()
    except EOFError as error:
        raise _killed() from error
    finally:
        receiving.close()
        process.terminate()
        process.join()
        process.close()
    if outcome is not None:
        raise outcome


def _send_outcome(sending: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    _leave_with_parent()
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - raised again by the parent
        sending.send(error)
    else:
        sending.send(None)


def _leave_with_parent() -> None:
    """A worker whose parent was killed would wait for ever for its next task."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise _killed() from error


def _killed() -> StorageError:
    return StorageError("a worker process was killed, most likely for want of memory; try fewer workers")
