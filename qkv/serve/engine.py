"""The engine as the process that talks to clients sees it: another process, which is begun anew if it should die."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from qkv.errors import QkvError
from qkv.serve.languages import Direction
from qkv.serve.line import Message, Started, start
from qkv.serve.orders import Order, as_message
from qkv.serve.refusals import OUR_FAULT, Refusal
from qkv.serve.room import Pace
from qkv.serve.settings import Settings
from qkv.serve.telling import LOG

_BEFORE_NEXT = 1.0
"""Seconds before a process that died is begun anew."""


class Engine:
    """A process that translates; orders and answers travel over a socket that no other process has."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: dict[int, asyncio.Queue[Message]] = {}
        self._number = 0
        self._worker: Started | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._probe: Order | None = None
        """What it is asked where it should have said something long ago."""
        self._silent_since: float | None = None
        """When it was asked for something and has told of nothing since."""
        self.pace = Pace()
        """What it has done."""
        self.heard = 0.0
        """When it last told of anything."""

    @property
    def alive(self) -> bool:
        return self._worker is not None

    async def begin(self) -> list[Direction]:
        """Starts the process and gives the directions that it has; what it cannot load is told by a `QkvError`."""
        worker, directions = await self._start()
        self._probe = Order(["."], *directions[0])
        self._tasks = [asyncio.create_task(self._listen(worker)), asyncio.create_task(self._watch())]
        return directions

    async def end(self) -> None:
        """Ends the process; it has nothing left to do."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._leave()

    async def translate(self, order: Order) -> list[list[str]]:
        """For each text its translation, and others; whoever stops waiting stops the work."""
        with self._asked(order) as answers:
            texts: list[list[str]] = _told(await answers.get())["texts"]
            return texts

    async def explain(self, order: Order) -> Message:
        """The sentences of one text with their words, as `qkv.serve.explaining` tells them."""
        with self._asked(order) as answers:
            explained: Message = _told(await answers.get())["explained"]
            return explained

    async def inspect(self, order: Order) -> str:
        """What is shown of one sentence, as JSON."""
        with self._asked(order) as answers:
            inspected: str = _told(await answers.get())["inspected"]
            return inspected

    async def grow(self, order: Order, seconds: float) -> AsyncIterator[str]:
        """The parts of a translation as they come, in so many seconds; whoever stops listening stops the work."""
        until = time.monotonic() + seconds
        with self._asked(order) as answers:
            # Parts may be asked for by one task after the other: a limit for all of them together is none of a task's.
            while "part" in (message := _told(await asyncio.wait_for(answers.get(), until - time.monotonic()))):
                yield message["part"]

    @contextmanager
    def _asked(self, order: Order) -> Iterator[asyncio.Queue[Message]]:
        """All that is said about an order, the last of it without a `part`."""
        if self._worker is None:
            raise _restarting()
        self._number += 1
        if self._silent_since is None:
            self._silent_since = time.monotonic()
        number = self._number
        self._waiting[number] = asyncio.Queue()
        self._worker.send(as_message(number, order))
        try:
            yield self._waiting[number]
        finally:
            # It is still there where the last word has not come: nobody waits for that any more.
            if self._waiting.pop(number, None) is not None and self._worker is not None:
                self._worker.send({"number": number})

    async def _start(self) -> tuple[Started, list[Direction]]:
        worker = await start("qkv.serve.worker")
        worker.send({"settings": asdict(self._settings)})
        try:
            first = await worker.message()
        except BaseException:
            worker.end()
            raise
        first = first or {"error": "the process that translates ended before it had begun", "code": 4}
        self._worker = worker
        if "error" in first:
            self._leave()
            error = QkvError(first["error"])
            error.exit_code = first["code"]
            raise error
        return worker, [Direction(*pair) for pair in first["directions"]]

    async def _listen(self, worker: Started) -> None:
        while True:
            while (message := await worker.message()) is not None:
                self.heard, self._silent_since = time.monotonic(), None
                if "pace" in message:
                    self.pace = Pace(**message["pace"])
                    continue
                number = message["number"]
                answers = self._waiting.get(number) if "part" in message else self._waiting.pop(number, None)
                if answers is not None:
                    answers.put_nowait(message)
            worker = await self._restarted()

    async def _watch(self) -> None:
        """A process that was asked and is silent is asked for one word more; where it has none, it is ended."""
        patience = self._settings.engine_timeout
        while True:
            await asyncio.sleep(patience / 4)
            begun, worker = time.monotonic(), self._worker
            if self._probe is None or self._silent_since is None or begun - self._silent_since < patience:
                continue
            # What it was asked for may have been abandoned at once, and then there was nothing to say.
            with suppress(TimeoutError, Refusal), self._asked(self._probe) as answers:
                await asyncio.wait_for(answers.get(), patience)
            if self.heard < begun and worker is not None and worker is self._worker:
                LOG.error("the process that translates is stuck, and is ended")
                worker.process.kill()

    async def _restarted(self) -> Started:
        """A new process in place of the one that died; those who waited for that one are told."""
        while True:
            self._leave()
            while self._waiting:
                self._waiting.popitem()[1].put_nowait({"lost": True})
            LOG.error("the process that translates died; it is begun anew")
            await asyncio.sleep(_BEFORE_NEXT)
            try:
                worker, _ = await self._start()
            except (QkvError, OSError) as error:
                LOG.error("the process that translates cannot be begun: %s", error)
            else:
                return worker

    def _leave(self) -> None:
        self._silent_since = None
        if self._worker is not None:
            self._worker.end(within=0.5)
            self._worker = None


def _told(message: Message) -> Message:
    if "lost" in message:
        raise _restarting()
    if "refused" in message:
        raise Refusal("bad", f"Invalid request: {message['refused']}")
    if "error" in message:
        raise Refusal("failed", OUR_FAULT)
    return message


def _restarting() -> Refusal:
    return Refusal("away", "The server is getting its models ready; try again in a moment.", retry_after=2)
