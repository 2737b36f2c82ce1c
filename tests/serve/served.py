"""A real server in a process of its own, on a free port of the loopback address."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

_T = TypeVar("_T")


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A server, and how it is asked."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int, log: Path) -> None:
        self.process = process
        self.host = host
        self.port = port
        self.log = log
        """What it tells."""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """One request on a connection of its own; a body that is no bytes is sent as JSON."""
        told = dict(headers or {})
        if form is not None:
            body = urlencode(form, doseq=True).encode()
            told.setdefault("Content-Type", "application/x-www-form-urlencoded")
        elif body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            told.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, told)
            answer = connection.getresponse()
            return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Got:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Got:
        return self.ask("POST", path, body, **more)

    def translate(self, text: str) -> Got:
        return self.post("/translate", {"q": text, "source": "en", "target": "fr"})

    def metric(self, name: str) -> float:
        """A figure of /metrics."""
        found = re.search(rf"^qkv_{re.escape(name)} (\S+)$", self.get("/metrics").body.decode(), re.MULTILINE)
        assert found is not None, name
        return float(found[1])

    @property
    def worker(self) -> int:
        """The process that translates."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def memory(self) -> float:
        """Megabytes that both processes hold."""
        pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (self.process.pid, self.worker)]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(
    model: Path, *options: str, port: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """A server of this model, from English to French."""
    named = ("--model", str(model), "--from", "en", "--to", "fr")
    with running(*named, *options, port=port, environment=environment) as served:
        yield served


@contextmanager
def running(*options: str, port: int = 0, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A server with these options."""
    command = [sys.executable, "-m", "qkv", "serve", "--port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        # A file, because a pipe that nobody reads would stop whoever writes.
        log = Path(folder) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [*command, *options], stderr=file, text=True, env={**os.environ, **(environment or {})}
            )
        try:
            assert eventually(lambda: "http://" in log.read_text() or process.poll() is not None, 120), "no start"
            address = re.search(r"http://([\d.]+):(\d+)", log.read_text())
            assert address is not None, log.read_text()
            yield Served(process, address[1], int(address[2]), log)
        finally:
            process.kill()
            process.wait()


def eventually(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it comes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.01)
    return False


async def with_turns(work: Awaitable[_T]) -> tuple[_T, int]:
    """What comes of some work, and how often others had their turn meanwhile."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(others())
    found = await work
    waiting.cancel()
    return found, turns


def connected(served: Served) -> socket.socket:
    """A connection on which anything can be said."""
    connection = socket.create_connection((served.host, served.port), timeout=30)
    connection.settimeout(30)
    return connection


def posted(text: str) -> bytes:
    """A request for a translation."""
    body = f'{{"q": "{text}", "source": "en", "target": "fr"}}'.replace("\n", "\\n").encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def listens(served: Served) -> bool:
    """Whether anybody can connect."""
    try:
        connected(served).close()
    except ConnectionRefusedError:
        return False
    return True


def send(served: Served, path: str, name: str, data: bytes, **fields: str) -> Got:
    """A file, sent as a form."""
    parts = [
        f'--xyz\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    parts.append(f'--xyz\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + data)
    body = b"".join(parts) + b"\r\n--xyz--\r\n"
    return served.post(path, body, headers={"Content-Type": "multipart/form-data; boundary=xyz"})
