"""A server of its own process, and clients that ask it: what the trials of `bench.serve_load` are made of."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_STARTS = 120.0
"""Seconds that a server has to answer for the first time."""


class Server:
    """A server of its own process, on a free port of the loopback address."""

    host = "127.0.0.1"

    def __init__(self, command: Sequence[str]) -> None:
        self.port = _free_port()
        # A file, because a pipe that nobody reads would stop whoever writes.
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - it is there as long as the server
        command = [*command, "--host", self.host, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=self._told, stderr=self._told)

    async def begin(self) -> None:
        """Waits until it answers; says what it told where it does not."""
        until = time.monotonic() + _STARTS
        while True:
            try:
                if (await Connection(self).ask("/health"))[0] == 200:
                    return
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.05)
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                self._told.seek(0)
                raise SystemExit(f"the server did not start:\n{self._told.read().decode(errors='replace')}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Asks it to stop, and gives its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def memory(self) -> list[float]:
        """Megabytes that it holds, and those of each process that it began."""
        begun = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (self.process.pid, *begun)]
        return [one * os.sysconf("SC_PAGE_SIZE") / 1e6 for one in pages]

    def files(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])


def _free_port() -> int:
    with socket.socket() as some:
        some.bind((Server.host, 0))
        port: int = some.getsockname()[1]
        return port


@asynccontextmanager
async def running(command: Sequence[str]) -> AsyncIterator[Server]:
    """A server while it is needed."""
    server = Server(command)
    try:
        await server.begin()
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


class Connection:
    """A client that keeps its connection, as HTTP/1.1 has it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.reopened = 0
        """How often a connection that was kept had been closed before anything of an answer came."""

    async def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        kept = self._streams is not None
        try:
            await self.send(path, body)
            return await self.answer()
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            # A server may close a connection that nobody uses, and cannot know that a request is on its way: where
            # nothing came, HTTP leaves it to the client to send it once more on a new one (RFC 9112, 9.3.1).
            if not kept or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                raise
        self.close()
        self.reopened += 1
        return await self.ask(path, body)

    async def send(self, path: str, body: object = None) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._server.host, self._server.port)
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: bench\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self._streams[1].write(head.encode() + b"\r\n" + content)
        await self._streams[1].drain()

    async def answer(self) -> tuple[int, bytes]:
        assert self._streams is not None
        head = (await self._streams[0].readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", head)
        try:
            content = await self._streams[0].readexactly(int(length[1])) if length else b""
        except asyncio.IncompleteReadError as error:
            raise asyncio.IncompleteReadError(head + error.partial, error.expected) from error
        if b"connection: close" in head:
            self.close()
        return int(head.split()[1]), content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Tally:
    """What came of some requests."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    seconds: dict[int | str, list[float]] = field(default_factory=dict)
    took: float = 0.0
    """Seconds from the first question to the last answer."""
    reopened: int = 0
    changed: int = 0
    """Texts that were translated in another way than before."""

    def add(self, status: int | str, seconds: float) -> None:
        self.statuses[status] += 1
        self.seconds.setdefault(status, []).append(seconds)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.statuses[200] / self.took

    @property
    def others(self) -> dict[int | str, int]:
        """Whatever was not answered, and connections that had to be opened anew."""
        found = {status: count for status, count in self.statuses.items() if status != 200}
        return found | ({"reopened": self.reopened} if self.reopened else {})

    def join(self, other: Tally) -> None:
        """What came of others, at another time."""
        self.statuses.update(other.statuses)
        for status, some in other.seconds.items():
            self.seconds.setdefault(status, []).extend(some)
        self.took += other.took
        self.reopened += other.reopened
        self.changed += other.changed

    def at(self, share: float, status: int | str = 200) -> float:
        """Milliseconds that this share of the answers took no longer than."""
        some = sorted(self.seconds.get(status, [0.0]))
        return 1e3 * some[min(len(some) - 1, int(share * len(some)))]


class Bar(NamedTuple):
    """What a server of this kind is to reach, and whether it did."""

    what: str
    found: float | str
    held: bool

    def __str__(self) -> str:
        found = f"{self.found:.4g}" if isinstance(self.found, float) else self.found
        return f"{'held' if self.held else 'NOT HELD':<9} {self.what}: {found}"


def at_most(what: str, found: float, limit: float) -> Bar:
    return Bar(f"{what} (at most {limit:g})", found, found <= limit)


def nothing(what: str, found: object) -> Bar:
    """Where nothing of it may be found."""
    return Bar(what, str(found or "none"), not found)


@dataclass(frozen=True)
class Asking:
    """What clients ask for."""

    source: str
    target: str
    answers: dict[str, bytes] = field(default_factory=dict)
    """What was answered to each text, first."""

    def of(self, text: str) -> dict[str, str]:
        return {"q": text, "source": self.source, "target": self.target}

    async def until(
        self, server: Server, sentences: Sequence[str], tally: Tally, until: float, pause: float = 0.0
    ) -> None:
        """One client that asks again and again, with a pause after each answer."""
        connection = Connection(server)
        for text in itertools.cycle(sentences):
            begun = time.monotonic()
            if begun > until:
                break
            try:
                status, body = await connection.ask("/translate", self.of(text))
            except (OSError, asyncio.IncompleteReadError) as error:
                connection.close()
                tally.add(type(error).__name__, time.monotonic() - begun)
                await asyncio.sleep(0.05)
                continue
            if status == 200 and self.answers.setdefault(text, body) != body:
                tally.changed += 1
            tally.add(status, time.monotonic() - begun)
            if pause:
                await asyncio.sleep(pause)
        connection.close()
        tally.reopened += connection.reopened

    async def closed_loop(self, server: Server, sentences: Sequence[str], connections: int, seconds: float) -> Tally:
        """So many clients, each asking as soon as it is answered."""
        tally = Tally()
        begun = time.monotonic()
        parts = [sentences[number::connections] or sentences for number in range(connections)]
        await asyncio.gather(*(self.until(server, part, tally, begun + seconds) for part in parts))
        tally.took = time.monotonic() - begun
        return tally


async def watch_health(server: Server, tally: Tally, until: float) -> None:
    connection = Connection(server)
    while (begun := time.monotonic()) < until:
        status, _ = await connection.ask("/health")
        tally.add(status, time.monotonic() - begun)
        await asyncio.sleep(0.02)
    connection.close()
