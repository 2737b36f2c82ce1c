"""Files that clients send: translated off the event loop, by the same call as texts, and kept for a while."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.responses import Response

from qkv.errors import QkvError
from qkv.files import kind_of, require_kind, translate_file
from qkv.serve.desk import Desk
from qkv.serve.orders import Answer, Order, size
from qkv.serve.refusals import Refusal

_AT_ONCE = 4
"""Files that are taken apart or put together at a time."""
_MOST_WAITING = 16
_KEPT_SECONDS = 3600.0
_FETCHED_SECONDS = 10.0
"""In which whoever waits for a file asks for it: clients look every few seconds whether it is done."""
_LONGEST_NAME = 120
_ATTEMPTS = 20
_DETECTED = 5000
"""Characters by which the language of a file is found out."""

Translate = Callable[[Order], Awaitable[list[Answer]]]


@dataclass(frozen=True)
class Sent:
    """A file as it came, and the languages that were said; a source of None is found out."""

    name: str
    data: bytes
    source: str | None
    target: str
    glossary: dict[str, str] | None = None

    def __post_init__(self) -> None:
        try:
            require_kind(self.name)
        except QkvError as error:
            raise Refusal("bad", f"Invalid request: {error}", parameter="file") from error


@dataclass
class Count:
    """What has become of a file so far."""

    characters: int = 0
    """Translated."""
    all_characters: int = 0
    """Found in the file."""
    done: float = 0.0
    """When it was."""
    fetched: bool = False


@dataclass(frozen=True)
class Document:
    """A file on its way."""

    number: str
    key: str
    name: str
    """What the translation is called."""
    begun: float
    work: asyncio.Task[bytes]
    count: Count

    def response(self) -> Response:
        """The translation, to be saved under its name."""
        self.count.fetched = True
        kind = kind_of(self.name)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name, safe='')}"}
        media_type = kind.media_type if kind else "application/octet-stream"
        return Response(self.work.result(), media_type=media_type, headers=headers)


class Documents:
    """The files of a server: those that are being translated, and those that wait to be fetched."""

    def __init__(self, desk: Desk, most_bytes: int) -> None:
        self._desk = desk
        self._most_bytes = most_bytes
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files")
        self._kept: dict[str, Document] = {}

    def begin(self, sent: Sent, translate: Translate) -> Document:
        """Begins to translate a file; the languages are known to be right."""
        self._forget()
        if self._desk.stopping:
            raise Refusal("away", "The server is stopping; send the file again in a moment.", retry_after=5)
        if sum(not one.work.done() for one in self._kept.values()) >= _MOST_WAITING:
            raise Refusal("busy", "Slowdown: too many files are being translated; try again later.", retry_after=5)
        if sent.source is not None:
            self._desk.languages.direction(sent.source, sent.target)
        target = self._desk.languages.target(sent.target)
        path = PurePosixPath(sent.name.replace("\\", "/"))
        name = f"{path.stem[:_LONGEST_NAME]}.{target}{path.suffix}"
        count = Count()
        work = asyncio.ensure_future(self._translated(sent, target, translate, count))
        document = Document(secrets.token_hex(16), secrets.token_hex(32), name, time.monotonic(), work, count)

        def done(work: asyncio.Task[bytes]) -> None:
            count.done = time.monotonic()
            # Whoever never asks what came of it need not know that it failed.
            work.cancelled() or work.exception()

        work.add_done_callback(done)
        self._kept[document.number] = document
        return document

    @property
    def awaited(self) -> int:
        """How many are under way, or done and about to be fetched."""
        now = time.monotonic()
        return sum(
            not one.work.done() or (not one.count.fetched and now - one.count.done < _FETCHED_SECONDS)
            for one in self._kept.values()
        )

    def get(self, number: str) -> Document:
        """A file that somebody sent."""
        self._forget()
        if number not in self._kept:
            raise Refusal("not_found", "Document not found")
        return self._kept[number]

    def drop(self, document: Document) -> None:
        """Forgets a file, and gives up what is under way."""
        document.work.cancel()
        self._kept.pop(document.number, None)

    async def _translated(self, sent: Sent, target: str, translate: Translate, count: Count) -> bytes:
        loop = asyncio.get_running_loop()
        under_way: list[Future[list[Answer]]] = []
        given_up = threading.Event()

        def ask(texts: list[str]) -> list[str]:
            source = sent.source or self._desk.source(None, target, "\n".join(texts)[:_DETECTED]).language
            answers: list[str] = []
            count.all_characters += sum(map(len, texts))
            for some in self._helpings(texts):
                if given_up.is_set():
                    raise Refusal("late", "Nobody waits for this file any more.")
                order = Order(some, source, target, "marks", glossary=sent.glossary)
                under_way.append(asyncio.run_coroutine_threadsafe(_patiently(translate, order), loop))
                answers += [one.text for one in under_way[-1].result()]
                count.characters += sum(map(len, some))
            return answers

        work = partial(translate_file, sent.data, sent.name, ask, source=sent.source, target=target)
        try:
            return await loop.run_in_executor(self._threads, work)
        except QkvError as error:
            raise Refusal("bad", f"Invalid request: {error}", parameter="file") from error
        finally:
            given_up.set()
            for one in under_way:
                one.cancel()

    def _helpings(self, texts: list[str]) -> Iterator[list[str]]:
        """The texts of a file, as many at a time as a request may have."""
        settings = self._desk.settings
        some: list[str] = []
        characters = tokens = 0
        for text in texts:
            characters, tokens = characters + len(text), tokens + size(text)
            full = len(some) == settings.request_texts
            if some and (full or characters > settings.request_characters or tokens > settings.request_tokens):
                yield some
                some, characters, tokens = [], len(text), size(text)
            some.append(text)
        if some:
            yield some

    def _forget(self) -> None:
        """Drops what nobody fetched for long, and the oldest where all together are too large."""
        sizes = {
            one.number: len(one.work.result())
            for one in self._kept.values()
            if one.work.done() and not one.work.cancelled() and one.work.exception() is None
        }
        total = sum(sizes.values())
        for one in [*self._kept.values()]:
            if one.work.done() and (time.monotonic() - one.begun > _KEPT_SECONDS or total > self._most_bytes):
                total -= sizes.get(one.number, 0)
                del self._kept[one.number]


async def _patiently(translate: Translate, order: Order) -> list[Answer]:
    """Translates a part of a file; where others are before it, it waits, for the rest is done already."""
    for _ in range(_ATTEMPTS):
        try:
            return await translate(order)
        except Refusal as refusal:
            if refusal.reason not in ("busy", "away"):
                raise
            await asyncio.sleep(refusal.retry_after or 1)
    return await translate(order)
