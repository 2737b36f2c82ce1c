"""The line between two processes: whole messages of JSON, and bytes behind those that say so."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

Message = dict[str, Any]

_LENGTH = struct.Struct("<I")
_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class Line:
    """The line as the process that was started holds it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()

    def messages(self) -> Iterator[Message]:
        """Messages until the other end closes."""
        while head := self.read(_LENGTH.size):
            yield json.loads(self.read(_length(head)))

    def has_more(self) -> bool:
        """Whether another message has come already."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def send(self, message: Message, behind: bytes = b"") -> None:
        # Nobody listens any more: this process will end as well.
        with self._writing, contextlib.suppress(OSError):
            self._connection.sendall(packed(message))
            self._connection.sendall(behind)

    def read(self, count: int) -> bytes:
        """So many bytes; none where the other end has closed."""
        parts = []
        while count:
            some = self._connection.recv(min(count, 1 << 20))
            if not some:
                return b""
            parts.append(some)
            count -= len(some)
        return b"".join(parts)


def own_line() -> Line:
    """The line of this process, which was started by `start` and does not outlive who started it."""
    if sys.platform == "linux":
        # Whoever is busy does not hear that the other end has closed; the kernel does.
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    # When to end is said by the other process, which closes the socket; a terminal sends signals to both.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "SCHED_BATCH"):
        # Whoever answers clients needs a core for a moment, often: this process does not mind to wait for it.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return Line(socket.socket(fileno=int(sys.argv[1])))


class Started(NamedTuple):
    """A process, and the line as the one that started it holds it."""

    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def message(self) -> Message | None:
        """The next message; None where there will be none."""
        try:
            content = await self.reader.readexactly(_length(await self.reader.readexactly(_LENGTH.size)))
        except (asyncio.IncompleteReadError, OSError):
            return None
        message: Message = json.loads(content)
        return message

    def send(self, message: Message) -> None:
        self.writer.write(packed(message))

    def kill(self) -> None:
        """Ends the process, whatever it is at; `killed` waits until nothing is left of it."""
        self.writer.close()
        self.process.kill()

    async def killed(self) -> int:
        """How it ended; others have their turn while the kernel takes its memory back."""
        return await asyncio.to_thread(self.process.wait)

    def end(self, *, within: float = 0.0) -> int:
        """Ends the process, which may do so by itself in so many seconds, and tells how it ended."""
        self.writer.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within)
        self.process.kill()
        return self.process.wait()


async def start(module: str) -> Started:
    """A process that runs a module; nobody else has the socket to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", module, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    try:
        return Started(process, *await asyncio.open_connection(sock=ours))
    except BaseException:
        # Whoever wanted it has left meanwhile, and nobody would know of it.
        ours.close()
        process.kill()
        process.wait()
        raise


def packed(message: Message) -> bytes:
    """A message with its length before it."""
    content = json.dumps(message, ensure_ascii=False).encode()
    return _LENGTH.pack(len(content)) + content


def _length(head: bytes) -> int:
    (count,) = _LENGTH.unpack(head)
    return int(count)
