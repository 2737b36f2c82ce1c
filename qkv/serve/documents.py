"""Files that clients send: translated by the same call as texts, and kept for a while."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from qkv.errors import QkvError
from qkv.files import kind_of, require_kind
from qkv.serve.clerks import Clerks, Sheet
from qkv.serve.desk import Desk
from qkv.serve.orders import Answer, Order, size
from qkv.serve.refusals import OUR_FAULT, Reason, Refusal
from qkv.serve.telling import LOG
from qkv.text.typography import is_typeset

_MOST_WAITING = 16
_KEPT_SECONDS = 3600.0
_FETCHED_SECONDS = 10.0
"""In which whoever waits for a file asks for it: clients look every few seconds whether it is done."""
_LONGEST_NAME = 120
_ATTEMPTS = 20
_DETECTED = 5000
"""Characters by which the language of a file is found out."""
_HELPING = 10_000
"""Characters of a file that are asked for together: seconds of work, so that large files share a slow engine."""
_BESIDES = 4096
"""Bytes that a file costs besides its own, also where nothing came of it."""

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


class Failure(NamedTuple):
    """Why nothing came of a file: not the exception, which would hold on to all that was at hand."""

    reason: Reason
    message: str

    def refusal(self) -> Refusal:
        return Refusal(self.reason, self.message, parameter="file")


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


@dataclass(eq=False)
class Document:
    """A file on its way."""

    number: str
    key: str
    protocol: str
    """By which it was sent: no other gives it out."""
    name: str
    """What the translation is called."""
    upload: int
    """Bytes that were sent."""
    count: Count = field(default_factory=Count)
    made: bytes = b""
    """The translation, when it is done."""
    failure: Failure | None = None
    work: asyncio.Task[None] = field(init=False)

    @property
    def held(self) -> int:
        """Bytes that are held for it."""
        return _BESIDES + (len(self.made) if self.work.done() else self.upload)

    def response(self) -> Response:
        """The translation, to be saved under its name."""
        self.count.fetched = True
        kind = kind_of(self.name)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name, safe='')}"}
        media_type = kind.media_type if kind else "application/octet-stream"
        return Response(self.made, media_type=media_type, headers=headers)


class Documents:
    """The files of a server: those that are being translated, and those that wait to be fetched."""

    def __init__(self, desk: Desk, most_bytes: int) -> None:
        self._desk = desk
        self._most_bytes = most_bytes
        self._clerks = Clerks(desk.settings.file_timeout)
        self._kept: dict[str, Document] = {}

    def begin(self, sent: Sent, translate: Translate, *, protocol: str) -> Document:
        """Begins to translate a file; the languages are known to be right."""
        self._forget()
        if self._desk.stopping:
            raise Refusal("away", "The server is stopping; send the file again in a moment.", retry_after=5)
        under_way = [one.held for one in self._kept.values() if not one.work.done()]
        if len(under_way) >= _MOST_WAITING or sum(under_way) + len(sent.data) > self._most_bytes:
            raise Refusal("busy", "Slowdown: too many files are being translated; try again later.", retry_after=5)
        if sent.source is not None:
            self._desk.languages.direction(sent.source, sent.target)
        target = self._desk.languages.target(sent.target)
        path = PurePosixPath(sent.name.replace("\\", "/"))
        name = f"{path.stem[:_LONGEST_NAME]}.{target}{path.suffix}"
        document = Document(secrets.token_hex(16), secrets.token_hex(32), protocol, name, len(sent.data))
        document.work = asyncio.ensure_future(self._work(document, sent, target, translate))
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

    def get(self, number: str, *, protocol: str) -> Document:
        """A file that somebody sent by this protocol; that there are others is not told."""
        self._forget()
        document = self._kept.get(number)
        if document is None or document.protocol != protocol:
            raise Refusal("not_found", "Document not found")
        return document

    def drop(self, document: Document) -> None:
        """Forgets a file, and gives up what is under way."""
        document.work.cancel()
        self._kept.pop(document.number, None)

    def close(self) -> None:
        """Gives up all that is under way, whatever it is at."""
        for document in [*self._kept.values()]:
            self.drop(document)
        self._clerks.close()

    async def _work(self, document: Document, sent: Sent, target: str, translate: Translate) -> None:
        """What comes of a file is told by its document, and never raised: somebody may ask an hour later."""
        try:
            document.made = await self._translated(document.count, sent, target, translate)
        except Refusal as refusal:
            document.failure = Failure(refusal.reason, refusal.message)
        except Exception:  # noqa: BLE001 - whoever asks for it must hear of it
            LOG.exception("a file failed")
            document.failure = Failure("failed", OUR_FAULT)
        finally:
            document.count.done = time.monotonic()

    async def _translated(self, count: Count, sent: Sent, target: str, translate: Translate) -> bytes:
        async def translated(texts: list[str]) -> AsyncIterator[list[str]]:
            source = sent.source or await self._desk.source("\n".join(texts)[:_DETECTED], target)
            count.all_characters += sum(map(len, texts))
            typeset = any(map(is_typeset, texts))
            for some in self._helpings(texts):
                order = Order(some, source, target, "marks", glossary=sent.glossary, typeset=typeset)
                yield [one.text for one in await _patiently(translate, order)]
                count.characters += sum(map(len, some))

        return await self._clerks.translate(Sheet(sent.name, sent.data, sent.source, target), translated)

    def _helpings(self, texts: list[str]) -> Iterator[list[str]]:
        """The texts of a file, some at a time, and never more than a request may have."""
        settings = self._desk.settings
        most_characters = min(_HELPING, settings.request_characters)
        some: list[str] = []
        characters = tokens = 0
        for text in texts:
            characters, tokens = characters + len(text), tokens + size(text)
            full = len(some) == settings.request_texts
            if some and (full or characters > most_characters or tokens > settings.request_tokens):
                yield some
                some, characters, tokens = [], len(text), size(text)
            some.append(text)
        if some:
            yield some

    def _forget(self) -> None:
        """Drops what nobody fetched for long, and the oldest where all together are too large."""
        total = sum(one.held for one in self._kept.values())
        for one in [*self._kept.values()]:
            if one.work.done() and (time.monotonic() - one.count.done > _KEPT_SECONDS or total > self._most_bytes):
                total -= one.held
                del self._kept[one.number]


async def _patiently(translate: Translate, order: Order) -> list[Answer]:
    """Translates a part of a file; where others are before it, it waits, for the rest is done already.

    Where so much takes too long, it is asked for in halves.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await translate(order)
        except Refusal as refusal:
            if refusal.reason == "late" and len(order.texts) > 1:
                middle = len(order.texts) // 2
                halves = (dataclasses.replace(order, texts=one) for one in (order.texts[:middle], order.texts[middle:]))
                return [answer for half in halves for answer in await _patiently(translate, half)]
            if refusal.reason not in ("busy", "away"):
                raise
            await asyncio.sleep(refusal.retry_after or 1)
    return await translate(order)
