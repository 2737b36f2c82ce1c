"""Who reads files for the server: processes that are ended where a file takes them too long."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from qkv.serve.line import Started, start
from qkv.serve.refusals import OUR_FAULT, Refusal
from qkv.serve.telling import LOG

_AT_ONCE = 4
"""Files that are read at a time."""
_MODULE = "qkv.serve.clerk"

Translate = Callable[[list[str]], AsyncIterator[list[str]]]
"""From the texts of a file to their translations, some at a time."""


@dataclass(frozen=True)
class Sheet:
    """A file to be read, and the languages that are written into it."""

    name: str
    data: bytes
    source: str | None
    target: str


class Clerks:
    """The processes: one for each file, as many as there may be; one of them waits for the next file."""

    def __init__(self, seconds: float) -> None:
        """Each has so many seconds of a core to take a file apart, and as many to put it together."""
        self._seconds = seconds
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._all: set[Started] = set()
        self._free: Started | None = None
        self._ending: set[asyncio.Future[int]] = set()

    async def translate(self, sheet: Sheet, translate: Translate) -> bytes:
        """The file with its texts translated; raises `Refusal` where it cannot be read, or not in time."""
        async with self._places:
            clerk, self._free = self._free, None
            if clerk is None or clerk.process.poll() is not None:
                self._all.discard(clerk)
                clerk = await start(_MODULE)
                self._all.add(clerk)
            try:
                made = await self._made(clerk, sheet, translate)
            except BaseException:
                self._end(clerk)
                raise
            self._leave(clerk)
        if isinstance(made, str):
            raise Refusal("bad", f"Invalid request: {made}", parameter="file")
        return made

    def close(self) -> None:
        """Ends all of them, whatever they are doing."""
        clerks = [*self._all]
        for clerk in clerks:
            self._end(clerk)
        for clerk in clerks:
            clerk.process.wait()

    async def _made(self, clerk: Started, sheet: Sheet, translate: Translate) -> bytes | str:
        """The file, or why it cannot be read."""
        said = {"name": sheet.name, "source": sheet.source, "target": sheet.target}
        clerk.send(said | {"bytes": len(sheet.data), "seconds": self._seconds})
        clerk.writer.write(sheet.data)
        texts: list[str] = []
        while (message := await clerk.message()) is not None:
            if "refused" in message:
                return str(message["refused"])
            if "made" in message:
                with contextlib.suppress(asyncio.IncompleteReadError):
                    return await clerk.reader.readexactly(message["made"])
                break
            texts += message.get("texts", [])
            if "asked" in message:
                async for some in translate(texts):
                    clerk.send({"answers": some})
                texts = []
        raise await self._lost(clerk)

    async def _lost(self, clerk: Started) -> Refusal:
        """What is told of a file that was the end of a process."""
        # The kernel closes its end of the line first, and tells a moment later how it ended.
        if await clerk.killed() == -signal.SIGPROF:
            message = f"Invalid request: this file takes more than {self._seconds:g} seconds to read; split it"
            return Refusal("too_much", message, parameter="file")
        LOG.error("a process that reads files died")
        return Refusal("failed", OUR_FAULT)

    def _leave(self, clerk: Started) -> None:
        """A clerk has nothing to do: one waits for the next file, the others go."""
        if self._free is None:
            self._free = clerk
        else:
            self._end(clerk)

    def _end(self, clerk: Started) -> None:
        self._all.discard(clerk)
        if self._free is clerk:
            self._free = None
        clerk.kill()
        waiting = asyncio.ensure_future(clerk.killed())
        self._ending.add(waiting)
        waiting.add_done_callback(self._ending.discard)
