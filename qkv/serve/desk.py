"""The desk: the one call behind all protocols. Texts come in and go out; in between, their sentences go to a room."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from qkv.serve.detecting import Detected, Detector
from qkv.serve.languages import Languages, Models
from qkv.serve.refusals import Refusal
from qkv.serve.room import How, Job, Room
from qkv.serve.settings import Settings
from qkv.text.glossary import Glossary
from qkv.translate import Markup, Parted, Terms, Translation, Translator, part, terms_of

_KEPT = ("placeholders", "urls", "e-mails")
"""What comes out of a translation as it went in."""
_CHARACTERS_A_TOKEN = 3
"""About: before a text is cut into tokens, it is believed to have so many."""
_STREAMS = 4
"""Translations that may grow before somebody's eyes at a time."""
_LONGEST_RETRY = 60


@dataclass(frozen=True)
class Order:
    """Texts, and how they are wanted; a source of None is found out, for each text."""

    texts: Sequence[str]
    source: str | None
    target: str
    markup: Markup = "none"
    alternatives: int = 0
    glossary: Glossary | None = None
    untouched: tuple[str, ...] = ()
    """Names of tags whose content stays as it is."""


class Answer(NamedTuple):
    """A translation, others of the same text, and the language that it was in."""

    text: str
    alternatives: tuple[str, ...]
    source: str
    confidence: float
    """How sure the language is, from 0 to 1."""


class Prepared(NamedTuple):
    """A text as the room takes it."""

    parted: Parted
    sizes: list[int]
    terms: list[Terms | None]


class Desk:
    """Takes orders, as many as can be done in time, and sees to it that they are."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self.languages = Languages(models.directions())
        self.settings = settings
        self.detector = Detector(self.languages.all)
        self.stopping = False
        self.queued_tokens = 0
        """Tokens of all that was accepted and is not done."""
        self.orders = 0
        """How many orders those are."""
        self.given_up = 0
        self._models = models
        self._rooms: dict[int, Room] = {}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="desk")
        self._streams = asyncio.Semaphore(_STREAMS)
        for direction in models.directions():
            self._room(*direction)

    @property
    def rooms(self) -> list[Room]:
        return [*self._rooms.values()]

    def close(self) -> None:
        for room in self.rooms:
            room.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _room(self, source: str, target: str) -> Room:
        translator = self._models.translator(source, target)
        if id(translator) not in self._rooms:
            self._rooms[id(translator)] = Room(
                translator,
                batch_tokens=self.settings.batch_tokens,
                batch_wait=self.settings.batch_wait,
                name=f"{source}-{target}",
            )
        return self._rooms[id(translator)]

    async def translate(self, order: Order) -> list[Answer]:
        """The texts of an order, translated; raises `Refusal` where that cannot be."""
        self._require_within_limits(order)
        by_source: dict[str, list[int]] = {}
        detected = [self._source(order, text) for text in order.texts]
        for number, one in enumerate(detected):
            by_source.setdefault(one.language, []).append(number)
        answers: dict[int, Answer] = {}
        with self._admitted(sum(map(_believed_tokens, order.texts))):
            try:
                async with asyncio.timeout(self.settings.deadline):
                    for source, numbers in by_source.items():
                        texts = [order.texts[number] for number in numbers]
                        done = await self._from(source, texts, order)
                        for number, (text, *others) in zip(numbers, done, strict=True):
                            answers[number] = Answer(text, tuple(others), source, detected[number].confidence)
            except TimeoutError as error:
                self.given_up += 1
                seconds = f"{self.settings.deadline:g} seconds"
                message = f"The translation took longer than {seconds}; send less at once, or try again later."
                raise Refusal("late", message, retry_after=self._wait()) from error
        return [answers[number] for number in range(len(order.texts))]

    def detect(self, text: str) -> list[Detected]:
        """The languages that a text may be in, likeliest first."""
        return self.detector.ranked(text)

    def _source(self, order: Order, text: str) -> Detected:
        target = self.languages.direction(order.source or order.target, order.target).target
        if order.source is not None:
            return Detected(self.languages.direction(order.source, order.target).source, 1.0)
        for one in self.detector.ranked(text):
            if self.languages.reaches(one.language, target):
                return one
        raise Refusal("language", f"{order.target} is not supported", parameter="target")

    def _require_within_limits(self, order: Order) -> None:
        settings = self.settings
        if len(order.texts) > settings.request_texts:
            message = f"Invalid request: {len(order.texts)} texts exceed the limit of {settings.request_texts}"
            raise Refusal("too_much", message, parameter="text")
        characters = sum(map(len, order.texts))
        if characters > settings.request_characters:
            limit = settings.request_characters
            message = f"Invalid request: request ({characters}) exceeds text limit ({limit})"
            raise Refusal("too_much", message, parameter="text")

    def require_room(self, tokens: int = 0) -> None:
        """Refuses what could not be done soon: a queue in which work waits until nobody wants it helps nobody."""
        if self.stopping:
            raise Refusal("stopping", "The server is stopping; ask another one.", retry_after=1)
        # An order that is alone is let in whatever its size: its own limits hold for it.
        if self.queued_tokens and self.queued_tokens + tokens > self.settings.queue_tokens:
            message = "Slowdown: too much is waiting to be translated; try again later."
            raise Refusal("busy", message, retry_after=self._wait())

    def _wait(self) -> int:
        """Seconds until what is queued now should be done."""
        speed = sum(room.pace.tokens_a_second for room in self.rooms)
        return max(1, min(_LONGEST_RETRY, math.ceil(self.queued_tokens / speed))) if speed else 1

    @contextmanager
    def _admitted(self, tokens: int) -> Iterator[None]:
        self.require_room(tokens)
        self.queued_tokens += tokens
        self.orders += 1
        try:
            yield
        finally:
            self.queued_tokens -= tokens
            self.orders -= 1

    async def _from(self, source: str, texts: Sequence[str], order: Order) -> list[list[str]]:
        """For each text of one source language its translation, and others."""
        target = self.languages.direction(source, order.target).target
        if source == target:
            return [[text] for text in texts]
        room = self._room(source, target)
        loop = asyncio.get_running_loop()
        room.expect(+1)
        try:
            prepare = partial(_prepared, room.translator, texts, source, order)
            prepared = await loop.run_in_executor(self._threads, prepare)
            job = _job(prepared, self._how(order, prepared), loop.create_future())
            if job.count:
                room.submit(job)
        finally:
            room.expect(-1)
        if not job.count:
            return [[text] for text in texts]
        try:
            found = await job.done
        finally:
            if not job.done.done() or job.done.cancelled():
                room.abandon(job)
        return await loop.run_in_executor(self._threads, partial(_joined, prepared, found, order.alternatives))

    def _how(self, order: Order, prepared: Sequence[Prepared]) -> How:
        beam = self.settings.beam or None
        if order.alternatives:
            # A beam finds no more than it is wide.
            beam = max(beam or 0, order.alternatives + 1, _USUAL_BEAM)
        return How(beam, order.alternatives, align=any(one.parted.aligned for one in prepared))

    async def grow(self, text: str, source: str | None, target: str) -> AsyncIterator[str]:
        """The greedy translation of a text as it grows; whoever stops listening stops it."""
        order = Order([text], source, target)
        self._require_within_limits(order)
        direction = self.languages.direction(self._source(order, text).language, target)
        if direction.source == direction.target:
            yield text
            return
        room = self._room(*direction)
        loop = asyncio.get_running_loop()
        with self._admitted(_believed_tokens(text)):
            async with asyncio.timeout(self.settings.deadline), self._streams:
                prepare = partial(part, room.translator, text, language=direction.source)
                parted = await loop.run_in_executor(self._threads, prepare)
                for gap, sentence in zip(parted.pieces.gaps, (*parted.sentences, ""), strict=True):
                    if gap:
                        yield gap
                    growing = iter(room.translator.stream(sentence))
                    while (more := await loop.run_in_executor(self._threads, next, growing, None)) is not None:
                        yield more


_USUAL_BEAM = 4


def _believed_tokens(text: str) -> int:
    return len(text) // _CHARACTERS_A_TOKEN + 1


def _prepared(translator: Translator, texts: Sequence[str], source: str, order: Order) -> list[Prepared]:
    result = []
    for text in texts:
        parted = part(translator, text, language=source, markup=order.markup, untouched=order.untouched)
        result.append(
            Prepared(
                parted,
                [translator.measure(sentence) + 1 for sentence in parted.sentences],
                [_terms(sentence, order.glossary) for sentence in parted.sentences],
            )
        )
    return result


def _terms(sentence: str, glossary: Glossary | None) -> Terms | None:
    terms = terms_of(sentence, glossary=glossary, keep=_KEPT)
    return terms if terms != Terms() else None


def _job(prepared: Sequence[Prepared], how: How, done: asyncio.Future[list[Translation]]) -> Job:
    job = Job(how, done)
    for one in prepared:
        for sentence, size, terms in zip(one.parted.sentences, one.sizes, one.terms, strict=True):
            job.add(sentence, size, terms)
    return job


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
