"""The process: uvicorn, and an end at which no accepted work is lost."""

from __future__ import annotations

import asyncio
import contextlib
import math
import resource
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn

from qkv.errors import ConfigError, Stopped
from qkv.progress import tell
from qkv.serve.application import application
from qkv.serve.connections import protocol
from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.engine import Engine
from qkv.serve.keys import Keys
from qkv.serve.settings import Settings
from qkv.serve.state import State
from qkv.serve.telling import LOG, begin_telling

_BACKLOG = 2048
_LOOK_AGAIN = 0.1
_KEEP_USAGE = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(settings: Settings) -> None:
    """Answers until a signal comes; raises `Stopped` then, when all that was accepted is done."""
    begin_telling(settings)
    keys = Keys.load(Path(settings.keys)) if settings.keys else Keys()
    state = State(Path(settings.state) if settings.state else None)
    keys.remember(state.usage())
    _allow_files(settings.connections)
    with _listener(settings) as listener:
        end = asyncio.run(_served(settings, keys, state, listener))
    raise Stopped(end.told(), code=128 + end.signal)


class End(NamedTuple):
    """How a server ended."""

    signal: int
    files: int
    """That were accepted, and that nobody can have any more."""
    requests: int
    """That were accepted, and were not answered in time."""

    def told(self) -> str:
        lost = [f"{count} {what}" for count, what in ((self.files, "files"), (self.requests, "requests")) if count]
        return f"stopped; given up: {' and '.join(lost)}" if lost else "stopped; all that was accepted is done"


async def _served(settings: Settings, keys: Keys, state: State, listener: socket.socket) -> End:
    engine = Engine(settings)
    directions = await engine.begin()
    try:
        desk = Desk(engine, directions, settings)
        with contextlib.closing(Documents(desk, settings.buffered_bytes)) as documents:
            config = uvicorn.Config(
                application(desk, documents, keys, state, settings),
                http=protocol(settings),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=math.ceil(settings.idle_timeout),
                backlog=_BACKLOG,
            )
            server = Server(config, desk, documents, settings)
            keeping = asyncio.create_task(_keep_usage(keys, state))
            await server.serve(sockets=[listener])
            keeping.cancel()
            end = End(server.signal, documents.awaited, server.unanswered)
        if end.files:
            LOG.warning("%d files that were accepted have not been fetched, and are lost", end.files)
    finally:
        state.keep_usage(keys.usage())
        await engine.end()
    return end


async def _keep_usage(keys: Keys, state: State) -> None:
    """What is used between two looks is all that a crash can forget."""
    while True:
        await asyncio.sleep(_KEEP_USAGE)
        await asyncio.to_thread(state.keep_usage, keys.usage())


def _listener(settings: Settings) -> socket.socket:
    """A socket that listens, or a line that says why there is none."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named, because asyncio sends small packets at once only where it knows that it is TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        # From here on a client is not refused: it waits until somebody answers.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --host or --port"
        ) from error
    return listener


def _allow_files(connections: int) -> None:
    """Every connection is an open file: as many as are wanted and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 256
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


class Server(uvicorn.Server):
    """Says that it is not ready, goes on listening for a moment, then finishes what it has accepted."""

    def __init__(self, config: uvicorn.Config, desk: Desk, documents: Documents, settings: Settings) -> None:
        super().__init__(config)
        self.signal = signal.SIGTERM
        self.unanswered = 0
        """Requests that were given up at the end."""
        self._desk = desk
        self._documents = documents
        self._settings = settings
        self._until = time.monotonic() + settings.drain_timeout
        """When all has to be done, once a signal has come."""
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._desk.stopping:
            # Whoever asks twice does not want to wait.
            self.should_exit = self.force_exit = True
            return
        self.signal = signal.Signals(sig)
        self._desk.stopping = True
        self._until = time.monotonic() + self._settings.drain_delay + self._settings.drain_timeout
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Not before: whoever reads this may send a signal at once.
        for listener in sockets or []:
            address = listener.getsockname()
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            there = ", ".join(self._desk.languages.directions)
            tell(f"qkv: listening on http://{host}:{address[1]} ({there})")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The kernel has taken connections that nobody has accepted yet: with the listener it would reset them.
        queued = [one for listener in sockets or [] for one in _queued(listener)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for one in queued:
            await loop.connect_accepted_socket(self._connection, one)
        # What the files have left of the time is for the requests.
        self.config.timeout_graceful_shutdown = max(1, math.ceil(self._until - time.monotonic()))
        await super().shutdown(sockets)
        self.unanswered = len(self.server_state.tasks)

    def _connection(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def _drain(self) -> None:
        """Listens until others are asked instead, and as long as somebody will come for a file that was accepted."""
        await asyncio.sleep(self._settings.drain_delay)
        while self._documents.awaited and time.monotonic() < self._until:
            await asyncio.sleep(_LOOK_AGAIN)
        self.should_exit = True


def _queued(listener: socket.socket) -> Iterator[socket.socket]:
    """Connections that wait to be accepted."""
    with contextlib.suppress(BlockingIOError):
        while True:
            yield listener.accept()[0]
