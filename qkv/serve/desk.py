"""The desk: the one call behind all protocols. It takes what can be done in time, and sees to it that it is."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence, Sized
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from qkv.serve.detecting import Detected, Detector
from qkv.serve.engine import Engine
from qkv.serve.languages import Direction, Languages
from qkv.serve.limits import require_few
from qkv.serve.orders import Answer, Order, size
from qkv.serve.refusals import Refusal
from qkv.serve.settings import Settings

_LONGEST_RETRY = 60
_LEAST_LIKELY, _LIKELY = 0.01, 0.5
"""Confidences: a language below the first is not that of the text, one above the second is likelier than all others."""
_TURN = 0.002
"""Seconds that telling languages apart may take before others have their turn."""
_SHARE = 4
"""Orders that fill all the room there is, however large they are: each order has its turn among the others, so that a
large one makes others wait no longer than several small ones."""


class Explained(NamedTuple):
    """A text that was explained: the language that it was in, the one that it is in now, and its sentences."""

    detected: Detected
    target: str
    told: dict[str, Any]


class Desk:
    """Takes orders, and sends those away that would have to wait for too long."""

    def __init__(self, engine: Engine, directions: Sequence[Direction], settings: Settings) -> None:
        self.engine = engine
        self.languages = Languages(directions)
        self.settings = settings
        self.stopping = False
        """Whether others should be asked from now on; whoever still comes is served."""
        self.queued_tokens = 0
        """Tokens of all that was accepted and is not done."""
        self._sizes: dict[object, int] = {}
        """Tokens of each."""
        self._batched = 0
        """How many of them the engine has to go on with, so that it is heard of."""
        self.given_up = 0
        self._busy_since = 0.0
        self._detector = Detector(self.languages.all)

    @property
    def orders(self) -> int:
        """How many orders are accepted and not done."""
        return len(self._sizes)

    @property
    def ready(self) -> bool:
        return self.engine.alive and not self.stopping

    async def detect(self, texts: Iterable[str]) -> list[list[Detected]]:
        """For each text the languages that it may be in, likeliest first; others have their turn meanwhile."""
        found = []
        until = time.monotonic() + _TURN
        for text in texts:
            found.append(self._detector.ranked(text))
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + _TURN
        return found

    async def translate(self, order: Order) -> list[Answer]:
        """The texts of an order, translated; raises `Refusal` where that cannot be."""
        self.require_within_limits(order.texts)
        detected = await self._sources(order)
        by_source: dict[str, list[int]] = {}
        for number, one in enumerate(detected):
            by_source.setdefault(one.language, []).append(number)
        answers: dict[int, Answer] = {}
        async with self._in_time(order):
            for source, numbers in by_source.items():
                done = await self._from(source, [order.texts[number] for number in numbers], order)
                for number, (text, *others) in zip(numbers, done, strict=True):
                    answers[number] = Answer(text, tuple(others), source, detected[number].confidence)
        return [answers[number] for number in range(len(order.texts))]

    async def explain(self, order: Order) -> Explained:
        """One text, translated sentence by sentence, with what is known of the words."""
        self.require_within_limits(order.texts)
        (text,) = order.texts
        (detected,) = await self._sources(order)
        target = self.languages.direction(detected.language, order.target).target
        told: dict[str, Any] = {"sentences": [], "after": text}
        async with self._in_time(order):
            if detected.language != target:
                settled = dataclasses.replace(order, source=detected.language, target=target, explained=True)
                told = await self.engine.explain(settled)
        return Explained(detected, target, told)

    async def inspect(self, order: Order) -> str:
        """What is shown of one sentence while it is translated, as JSON."""
        self.require_within_limits(order.texts)
        ((source, _),) = await self._sources(order)
        target = self.languages.direction(source, order.target).target
        if source == target:
            raise Refusal(
                "bad", "Invalid request: nothing is translated from a language into itself", parameter="target"
            )
        settled = dataclasses.replace(order, source=source, target=target, inspected=True)
        async with self._in_time(settled):
            return await self.engine.inspect(settled)

    async def grow(self, order: Order) -> AsyncIterator[str]:
        """The greedy translation of one text as it grows; whoever stops listening stops it."""
        self.require_within_limits(order.texts)
        (text,) = order.texts
        ((source, _),) = await self._sources(order)
        target = self.languages.direction(source, order.target).target
        settled = dataclasses.replace(order, source=source, target=target, streamed=True)
        with self._admitted(settled):
            if source == target:
                yield text
                return
            try:
                async for more in self.engine.grow(settled, self.settings.deadline):
                    yield more
            except TimeoutError as error:
                raise self._late() from error

    def require_within_limits(self, texts: Sequence[str]) -> None:
        """Refuses more than one request may ask for."""
        self.require_few_texts(texts)
        settings = self.settings
        for what, count, limit in (
            ("", sum(map(len, texts)), settings.request_characters),
            (" tokens", sum(map(size, texts)), settings.request_tokens),
        ):
            if count > limit:
                message = f"Invalid request: request ({count}{what}) exceeds text limit ({limit}{what})"
                raise Refusal("too_much", message, parameter="text")

    def require_few_texts(self, texts: Sized) -> None:
        """The same of their number alone."""
        require_few(texts, self.settings.request_texts, "texts", parameter="text")

    def require_room(self) -> None:
        """Refuses what could not be done soon: a queue in which work waits until nobody wants it helps nobody."""
        # While there is any room, whoever comes is let in, so that nobody's size has to be known to be refused, and
        # large orders are not kept out by small ones: what is too much then is one order, whose own limits hold for it.
        if self._filled() >= self._room_for() or self._is_stuck():
            raise self._busy()

    async def source(self, text: str, target: str) -> str:
        """The language that a text looks like, of those that can be translated into the target."""
        (found,) = await self._sources(Order([text], None, target))
        return found.language

    async def _sources(self, order: Order) -> list[Detected]:
        """The language of each text: what is said, or what it looks like."""
        if order.source is not None:
            said = Detected(self.languages.direction(order.source, order.target).source, 1.0)
            return [said] * len(order.texts)
        target = self.languages.target(order.target)
        return [self._likeliest(some, target) for some in await self.detect(order.texts)]

    def _likeliest(self, detected: list[Detected], target: str) -> Detected:
        first, *others = (one for one in detected if self.languages.reaches(one.language, target))
        if others and first.language == target and _LEAST_LIKELY < first.confidence < _LIKELY:
            # Whoever wants a translation has a text in another language, unless it is plain that it is not.
            return others[0]
        return first

    async def _from(self, source: str, texts: list[str], order: Order) -> list[list[str]]:
        target = self.languages.direction(source, order.target).target
        if source == target:
            return [[text] for text in texts]
        return await self.engine.translate(dataclasses.replace(order, texts=texts, source=source, target=target))

    def _room_for(self) -> int:
        """How many tokens may wait: what is done in a few seconds, and two batches where the speed is not known."""
        settings = self.settings
        soon = int(self._speed * settings.queue_seconds) if self._speed else 2 * settings.batch_tokens
        # Somebody is always let in: a speed that nobody measures any more would never change.
        return max(1, min(settings.queue_tokens, soon))

    def _filled(self) -> int:
        """How many tokens whoever comes has to wait for."""
        share = self._share()
        return sum(min(one, share) for one in self._sizes.values())

    def _share(self) -> int:
        """What of an order others have to wait for: it has no more than its turns."""
        return self._room_for() // _SHARE + 1

    def _is_hopeless(self, tokens: int) -> bool:
        """Whether an order is so large that beside others like it none would be done by its deadline."""
        by_half_time = self._speed * self.settings.deadline / 2
        return 0 < by_half_time < self.queued_tokens and tokens > self._share()

    def _is_stuck(self) -> bool:
        """Whether not even a step was taken in the time in which all that waits should be done."""
        silent = time.monotonic() - max(self.engine.heard, self._busy_since)
        return self._batched > 0 and silent > self.settings.queue_seconds

    @property
    def _speed(self) -> float:
        return self.engine.pace.tokens_a_second

    def _wait(self) -> int:
        """Seconds until what is queued now should be done."""
        return max(1, min(_LONGEST_RETRY, math.ceil(self._filled() / self._speed))) if self._speed else 1

    @asynccontextmanager
    async def _in_time(self, order: Order) -> AsyncIterator[None]:
        """Admits an order; what is not done by its deadline is given up."""
        with self._admitted(order):
            try:
                async with asyncio.timeout(self.settings.deadline):
                    yield
            except TimeoutError as error:
                raise self._late() from error

    @contextmanager
    def _admitted(self, order: Order) -> Iterator[None]:
        tokens = sum(map(size, order.texts))
        self.require_room()
        if self._is_hopeless(tokens):
            raise self._busy()
        if not self._batched:
            self._busy_since = time.monotonic()
        place = object()
        self._sizes[place] = tokens
        self.queued_tokens += tokens
        self._batched += order.batched
        try:
            yield
        finally:
            del self._sizes[place]
            self.queued_tokens -= tokens
            self._batched -= order.batched

    def _busy(self) -> Refusal:
        message = "Slowdown: too much is waiting to be translated; try again later."
        return Refusal("busy", message, retry_after=self._wait())

    def _late(self) -> Refusal:
        self.given_up += 1
        seconds = f"{self.settings.deadline:g} seconds"
        message = f"The translation took longer than {seconds}; send less at once, or try again later."
        return Refusal("late", message, retry_after=self._wait())
