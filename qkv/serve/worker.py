"""The process that computes. It reads orders from a socket, translates those of many clients together, and answers.

Whoever talks to clients is another process: however busy this one is, that one answers at once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any

from qkv.errors import QkvError
from qkv.serve.inspecting import inspected
from qkv.serve.line import Line, own_line
from qkv.serve.models import Models, Steps, load
from qkv.serve.orders import Order, from_message, size
from qkv.serve.preparing import Prepared, continued, in_style_of, linked, prepare
from qkv.serve.room import Job, Room
from qkv.serve.settings import Settings
from qkv.serve.telling import LOG, begin_telling
from qkv.text.languages import language
from qkv.translate import Translation, part

_STREAMS = 2
"""Translations that grow before somebody's eyes at a time."""
_LARGE = 1024
"""Tokens, as `orders.size` counts them: an order of more is a large one."""


class Worker:
    """Models, the room that they work in, and what is under way there."""

    def __init__(self, models: Models, settings: Settings, line: Line) -> None:
        self._models = models
        self._settings = settings
        self._line = line
        self._room = Room(
            batch_tokens=settings.batch_tokens,
            batch_wait=settings.batch_wait,
            expecting=lambda: self._unprepared > 0 or line.has_more(),
            measured=lambda pace: line.send({"pace": asdict(pace)}),
        )
        self._wanted: dict[int, Job | None] = {}
        """Orders that somebody waits for, and what is under way for them."""
        self._changing = threading.Lock()
        self._joining = ThreadPoolExecutor(1)
        self._streaming = ThreadPoolExecutor(_STREAMS)
        # Whatever somebody's large order costs, nobody's small one waits for it: like long sentences, large ones have a
        # thread of their own.
        self._preparing = (ThreadPoolExecutor(1), ThreadPoolExecutor(1))
        self._unprepared = 0
        """Small orders that have come and are not cut into sentences yet: a batch waits a moment for them, and not for
        large ones, which are cut long after that moment."""

    def work(self) -> None:
        """Follows messages until there are no more."""
        for message in self._line.messages():
            number = message["number"]
            if "order" not in message:
                self._abandon(number)
                continue
            self._wanted[number] = None
            order = from_message(message)
            large = _is_large(order)
            with self._changing:
                self._unprepared += not large
            # Not here: whoever has left meanwhile must be heard, or all the orders before would be prepared for nobody.
            self._preparing[large].submit(self._prepare, number, order, large)

    def _prepare(self, number: int, order: Order, large: bool) -> None:
        try:
            try:
                prepared = self._begin(number, order) if number in self._wanted else None
            finally:
                # Before its sentences are queued: a batch that waits asks then whether there is more to wait for.
                with self._changing:
                    self._unprepared -= not large
            if prepared is not None:
                self._queue(number, prepared)
        except Exception as error:  # noqa: BLE001 - one order that fails is no reason to fail the others
            self._fail(number, error)

    def _begin(self, number: int, order: Order) -> Prepared | None:
        """The order, cut into sentences, where it is one whose sentences are translated with those of others."""
        assert order.source is not None, "whoever sends an order has found out"
        steps = self._models.steps(language(order.source), language(order.target))
        abandoned = partial(self._is_abandoned, number)
        if order.streamed:
            self._streaming.submit(self._grow, number, order, steps)
            return None
        if order.prefix is not None:
            self._streaming.submit(self._answer, number, partial(continued, order, steps, abandoned=abandoned))
            return None
        if order.inspected:
            look = partial(inspected, order, steps, self._settings, abandoned=abandoned)
            self._streaming.submit(self._answer, number, look)
            return None
        assert order.batched
        return prepare(order, steps, beam=self._settings.beam, abandoned=abandoned)

    def _queue(self, number: int, prepared: Prepared) -> None:
        if prepared.sentences:
            self._step(number, prepared, prepared.translators, prepared.sentences)
        else:
            self._settle(number, prepared, [])

    def _step(
        self,
        number: int,
        prepared: Prepared,
        translators: Steps,
        texts: Sequence[str],
        before: Sequence[Translation] | None = None,
    ) -> None:
        """Queues what the next of the translators has to do."""
        translator, *left = translators
        step = prepared.steps[-len(translators)]

        def found(found: list[Translation] | Exception) -> None:
            if isinstance(found, Exception):
                self._fail(number, found)
                return
            found = linked(before, found)
            if left:
                self._step(number, prepared, (*left,), [one.text for one in found], found)
            else:
                self._settle(number, prepared, found)

        job = Job(translator, step.how, found)
        for text, terms in zip(texts, step.terms, strict=True):
            job.add(text, translator.measure(text) + 1, terms)
        with self._changing:
            if number not in self._wanted:
                return
            self._wanted[number] = job
        self._room.submit(job)

    def _abandon(self, number: int) -> None:
        with self._changing:
            job = self._wanted.pop(number, None)
        if job is not None:
            self._room.abandon(job)

    def _settle(self, number: int, prepared: Prepared, found: list[Translation]) -> None:
        # Putting a page together takes a while: the room does not wait for that.
        self._joining.submit(self._answer, number, partial(prepared.told, found))

    def _answer(self, number: int, find: Callable[[], dict[str, Any]]) -> None:
        """Tells what is found, if somebody still waits for it when it is to be looked for."""
        if number not in self._wanted:
            return
        try:
            told = find()
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            self._fail(number, error)
            return
        self._wanted.pop(number, None)
        self._line.send({"number": number, **told})

    def _grow(self, number: int, order: Order, steps: Steps) -> None:
        try:
            parted = part(steps[0], order.texts[0], language=order.source)
            steps = in_style_of(order, [parted], steps)
            for gap, sentence in zip(parted.pieces.gaps, (*parted.sentences, ""), strict=True):
                for more in itertools.chain([gap], self._growing(number, sentence, steps)):
                    if self._is_abandoned(number):
                        return
                    if more:
                        self._line.send({"number": number, "part": more})
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            self._fail(number, error)
            return
        self._wanted.pop(number, None)
        self._line.send({"number": number, "texts": []})

    def _growing(self, number: int, sentence: str, steps: Steps) -> Iterator[str]:
        """The translation of a sentence by the last of the steps; those before are done before anything shows."""
        *on_the_way, last = steps
        for translator in on_the_way:
            sentence = translator.translate([sentence], abandoned=lambda _: self._is_abandoned(number))[0].text
        return iter(last.stream(sentence)) if sentence else iter(())

    def _is_abandoned(self, number: int) -> bool:
        """Whether nobody waits for it any more."""
        return number not in self._wanted

    def _fail(self, number: int, error: Exception) -> None:
        self._wanted.pop(number, None)
        if isinstance(error, QkvError):
            # It says what was asked for that cannot be had.
            self._line.send({"number": number, "refused": str(error)})
            return
        LOG.error("order %d failed", number, exc_info=error)
        self._line.send({"number": number, "error": str(error)})


def _is_large(order: Order) -> bool:
    """Whether it may take more than a moment to be prepared."""
    return order.glossary is not None or sum(map(size, order.texts)) > _LARGE


def main() -> None:
    """Takes the settings as the first message."""
    line = own_line()
    settings = Settings(**next(line.messages())["settings"])
    begin_telling(settings)
    try:
        models = load(settings)
    except QkvError as error:
        line.send({"error": str(error), "code": error.exit_code})
        return
    worker = Worker(models, settings, line)
    # Clients know a region by a hyphen.
    line.send({"directions": [[code.replace("_", "-") for code in pair] for pair in models.directions()]})
    worker.work()


if __name__ == "__main__":
    main()
