"""The process that computes. It reads orders from a socket, translates those of many clients together, and answers.

Whoever talks to clients is another process: however busy this one is, that one answers at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from qkv.errors import ConfigError, QkvError
from qkv.serve.languages import Models, OneModel
from qkv.serve.orders import HEAD, Order, from_message, length, packed
from qkv.serve.room import How, Job, Room
from qkv.serve.settings import Settings
from qkv.serve.telling import LOG, begin_telling
from qkv.text.glossary import Entry, Glossary
from qkv.translate import COMMONLY_KEPT, Parted, Terms, Translation, Translator, part, terms_of

_STREAMS = 2
"""Translations that grow before somebody's eyes at a time."""


class Prepared(NamedTuple):
    """A text as a room takes it."""

    parted: Parted
    sizes: list[int]
    terms: list[Terms | None]


class Line:
    """The socket to the other process: whole messages, either way."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Messages until the other end closes."""
        while head := self._bytes(HEAD):
            yield json.loads(self._bytes(length(head)))

    def has_more(self) -> bool:
        """Whether another message has come already."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def send(self, message: dict[str, Any]) -> None:
        # Nobody listens any more: this process will end as well.
        with self._writing, contextlib.suppress(OSError):
            self._connection.sendall(packed(message))

    def _bytes(self, count: int) -> bytes:
        parts = []
        while count:
            some = self._connection.recv(min(count, 1 << 20))
            if not some:
                return b""
            parts.append(some)
            count -= len(some)
        return b"".join(parts)


class Worker:
    """Models, their rooms, and what is under way in them."""

    def __init__(self, models: Models, settings: Settings, line: Line) -> None:
        self._models = models
        self._settings = settings
        self._line = line
        self._rooms: dict[int, Room] = {}
        self._under_way: dict[int, tuple[Room, Job]] = {}
        self._streamed: set[int] = set()
        self._joining = ThreadPoolExecutor(1)
        self._streaming = ThreadPoolExecutor(_STREAMS)
        self._more = False

    def work(self) -> None:
        """Follows messages until there are no more."""
        for message in self._line.messages():
            # A batch waits a moment for what has come already.
            self._more = self._line.has_more()
            number = message["number"]
            if "order" not in message:
                self._abandon(number)
                continue
            try:
                self._begin(number, from_message(message))
            except Exception as error:  # noqa: BLE001 - one order that fails is no reason to fail the others
                self._fail(number, error)

    def _begin(self, number: int, order: Order) -> None:
        assert order.source is not None, "whoever sends an order has found out"
        room = self._room(order.source, order.target)
        if order.streamed:
            self._streamed.add(number)
            self._streaming.submit(self._grow, number, order, room.translator)
            return
        prepared = _prepared(room.translator, order)
        job = Job(
            _how(order, prepared, self._settings.beam), partial(self._settled, number, prepared, order.alternatives)
        )
        for one in prepared:
            for sentence, size, terms in zip(one.parted.sentences, one.sizes, one.terms, strict=True):
                job.add(sentence, size, terms)
        if not job.count:
            self._settled(number, prepared, order.alternatives, [])
            return
        self._under_way[number] = room, job
        room.submit(job)

    def _room(self, source: str, target: str) -> Room:
        translator = self._models.translator(source, target)
        if id(translator) not in self._rooms:
            self._rooms[id(translator)] = Room(
                translator,
                batch_tokens=self._settings.batch_tokens,
                batch_wait=self._settings.batch_wait,
                expecting=lambda: self._more,
            )
        return self._rooms[id(translator)]

    def _abandon(self, number: int) -> None:
        self._streamed.discard(number)
        if number in self._under_way:
            room, job = self._under_way.pop(number)
            room.abandon(job)

    def _settled(
        self, number: int, prepared: Sequence[Prepared], alternatives: int, found: list[Translation] | Exception
    ) -> None:
        self._under_way.pop(number, None)
        if isinstance(found, Exception):
            self._fail(number, found)
            return
        # Putting a page together takes a while: the room does not wait for that.
        self._joining.submit(self._join, number, prepared, alternatives, found)

    def _join(self, number: int, prepared: Sequence[Prepared], alternatives: int, found: list[Translation]) -> None:
        try:
            texts = _joined(prepared, found, alternatives)
            self._line.send({"number": number, "texts": texts, "paces": self._paces()})
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            self._fail(number, error)

    def _grow(self, number: int, order: Order, translator: Translator) -> None:
        try:
            parted = part(translator, order.texts[0], language=order.source)
            for gap, sentence in zip(parted.pieces.gaps, (*parted.sentences, ""), strict=True):
                for more in (gap, *translator.stream(sentence)) if sentence else (gap,):
                    if number not in self._streamed:
                        return
                    if more:
                        self._line.send({"number": number, "part": more})
            self._line.send({"number": number, "texts": [], "paces": self._paces()})
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        LOG.error("order %d failed", number, exc_info=error)
        self._line.send({"number": number, "error": str(error)})

    def _paces(self) -> list[dict[str, Any]]:
        return [asdict(room.pace) for room in self._rooms.values()]


def _how(order: Order, prepared: Sequence[Prepared], beam: int) -> How:
    align = any(one.parted.aligned for one in prepared)
    # A beam finds no more than it is wide.
    least = order.alternatives + 1
    return How(max(beam or least, least) if beam or order.alternatives else None, order.alternatives, align)


def _prepared(translator: Translator, order: Order) -> list[Prepared]:
    glossary = None
    if order.glossary is not None:
        glossary = Glossary([Entry(source, (target,), ()) for source, target in order.glossary.items()])
    result = []
    for text in order.texts:
        parted = part(translator, text, language=order.source, markup=order.markup, untouched=order.untouched)
        terms = [terms_of(sentence, glossary=glossary, keep=COMMONLY_KEPT) for sentence in parted.sentences]
        result.append(
            Prepared(
                parted,
                [translator.measure(sentence) + 1 for sentence in parted.sentences],
                [one if one != Terms() else None for one in terms],
            )
        )
    return result


def _joined(prepared: Sequence[Prepared], found: Sequence[Translation], alternatives: int) -> list[list[str]]:
    """For each text its translation, and then others: the second best of all sentences, the third best, and so on."""
    result = []
    position = 0
    for one in prepared:
        own = found[position : position + len(one.sizes)]
        position += len(one.sizes)
        ranks = [own, *([_ranked(some, rank) for some in own] for rank in range(alternatives))]
        texts = [one.parted.joined(rank) for rank in ranks]
        result.append([texts[0], *dict.fromkeys(text for text in texts[1:] if text != texts[0])])
    return result


def _ranked(best: Translation, rank: int) -> Translation:
    return best.alternatives[rank] if rank < len(best.alternatives) else best


def load(settings: Settings) -> Models:
    """The models that the settings name."""
    if not settings.model:
        raise ConfigError("serve needs --model, the directory of an exported model or a run")
    translator = Translator.load(settings.model, device=settings.device)
    source = settings.source or translator.source_language
    target = settings.target or translator.target_language
    if not source or not target:
        raise ConfigError(f"{settings.model} does not say which languages it knows; add --from and --to")
    return OneModel(translator, source, target)


def main() -> None:
    """Takes the number of the socket, and the settings as the first message on it."""
    # When to end is said by the other process, which closes the socket; a terminal sends signals to both.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "SCHED_BATCH"):
        # Whoever answers clients needs a core for a moment, often: this process does not mind to wait for it.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    line = Line(socket.socket(fileno=int(sys.argv[1])))
    settings = Settings(**next(line.messages())["settings"])
    begin_telling(settings)
    try:
        models = load(settings)
    except QkvError as error:
        line.send({"error": str(error), "code": error.exit_code})
        return
    worker = Worker(models, settings, line)
    line.send({"directions": models.directions()})
    worker.work()


if __name__ == "__main__":
    main()
