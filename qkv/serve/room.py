"""The engine room: one for each translator, where sentences of many requests are translated together.

Two threads take batches. One has the sentences of usual length, the other the long ones, so that somebody's endless
sentence delays nobody else's short one by more than its share of the cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qkv.errors import RuleError
from qkv.translate import Terms, Translation, Translator

_LOG = logging.getLogger("qkv.serve")
_LONG = 80
"""Tokens: a sentence of more is a long one."""
_REMEMBERED = 0.8
"""How much of the speed that was measured before stays in the next measurement."""


class How(NamedTuple):
    """How sentences are translated; those of one batch are translated alike."""

    beam: int | None
    alternatives: int
    align: bool


class Sentence(NamedTuple):
    """A sentence that waits, and where its translation belongs."""

    text: str
    size: int
    terms: Terms | None
    job: Job
    place: int


class Job:
    """The sentences of one request; `done` is set by the room, and cancelled by whoever no longer waits."""

    def __init__(self, how: How, done: asyncio.Future[list[Translation]]) -> None:
        self.how = how
        self.done = done
        self.abandoned = False
        self.waiting: tuple[deque[Sentence], deque[Sentence]] = (deque(), deque())
        """Those of usual length, and long ones."""
        self.found: dict[int, Translation] = {}
        self.count = 0

    def add(self, text: str, size: int, terms: Terms | None) -> None:
        self.waiting[size > _LONG].append(Sentence(text, size, terms, self, self.count))
        self.count += 1

    def settle(self, error: Exception | None = None) -> None:
        """Tells whoever waits, from any thread."""
        if self.abandoned:
            return

        def tell() -> None:
            if self.done.done():
                return
            if error is not None:
                self.done.set_exception(error)
            else:
                self.done.set_result([self.found[place] for place in range(self.count)])

        # A loop that has ended has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            self.done.get_loop().call_soon_threadsafe(tell)


@dataclass(frozen=True)
class Pace:
    """How quickly a room works."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0
    tokens_a_second: float = 0.0


class Room:
    """A translator and the sentences that wait for it."""

    def __init__(self, translator: Translator, *, batch_tokens: int, batch_wait: float, name: str) -> None:
        self.translator = translator
        self.pace = Pace()
        self._batch_tokens = batch_tokens
        self._batch_wait = batch_wait
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._coming = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(long,), name=f"{name} {'long' if long else 'usual'}", daemon=True)
            for long in (False, True)
        ]
        for thread in self._threads:
            thread.start()

    def expect(self, more: int) -> None:
        """So many requests more (or fewer) are on their way here: a batch waits for them, a little."""
        with self._changed:
            self._coming += more
            self._changed.notify_all()

    def submit(self, job: Job) -> None:
        """Queues the sentences of a job."""
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()

    def abandon(self, job: Job) -> None:
        """Nobody waits for this job any more: what of it is queued leaves now, what is in a batch at its next step."""
        job.abandoned = True
        with self._changed, contextlib.suppress(ValueError):
            self._jobs.remove(job)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self, long: bool) -> None:
        while (batch := self._next(long)) is not None:
            begun = time.monotonic()
            try:
                self._translate(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others who wait must be served
                _LOG.exception("a batch of %d sentences failed", len(batch))
                for job in {id(one.job): one.job for one in batch}.values():
                    self.fail(job, error)
            self._measure(batch, time.monotonic() - begun)

    def fail(self, job: Job, error: Exception) -> None:
        """The job cannot be done."""
        job.settle(error)
        self.abandon(job)

    def _next(self, long: bool) -> list[Sentence] | None:
        """The sentences that are translated next; None when there will be no more."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._closed or any(job.waiting[long] for job in self._jobs))
                if self._closed:
                    return None
                until = time.monotonic() + self._batch_wait
                while self._coming > 0 and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
                if batch := self._choose(long):
                    return batch

    def _choose(self, long: bool) -> list[Sentence]:
        """The sentence whose turn it is, and others of like length: each request has its turn."""
        first = next((job for job in self._jobs if job.waiting[long]), None)
        if first is None:
            return []
        self._jobs.remove(first)
        self._jobs.append(first)
        turn = first.waiting[long][0]
        rows = first.how.beam or self.translator.beam
        alike = (one for job in self._jobs if job.how == first.how for one in job.waiting[long])
        most = max(1, self._batch_tokens // rows)
        ranked = heapq.nsmallest(most, alike, key=lambda one: (one is not turn, abs(one.size - turn.size)))
        batch: list[Sentence] = []
        longest = 0
        for one in ranked:
            longest = max(longest, one.size)
            if batch and longest * rows * (len(batch) + 1) > self._batch_tokens:
                break
            batch.append(one)
        taken = {id(one) for one in batch}
        for job in {id(one.job): one.job for one in batch}.values():
            left = [one for one in job.waiting[long] if id(one) not in taken]
            job.waiting[long].clear()
            job.waiting[long].extend(left)
            if not any(job.waiting):
                self._jobs.remove(job)
        return batch

    def _translate(self, batch: Sequence[Sentence]) -> None:
        how = batch[0].job.how
        terms = [one.terms for one in batch]
        while True:
            try:
                found = self.translator.translate(
                    [one.text for one in batch],
                    beam=how.beam,
                    alternatives=how.alternatives,
                    align=how.align,
                    terms=terms if any(terms) else None,
                    abandoned=lambda number: batch[number].job.abandoned,
                )
                break
            except RuleError as error:
                # What should stay as it is cannot: the translation is worth more than that.
                terms[error.sentence] = None
        for one, translation in zip(batch, found, strict=True):
            one.job.found[one.place] = translation
        for job in {id(one.job): one.job for one in batch}.values():
            if len(job.found) == job.count:
                job.settle()

    def _measure(self, batch: Sequence[Sentence], seconds: float) -> None:
        tokens = sum(one.size for one in batch)
        with self._changed:
            now, before = tokens / max(seconds, 1e-6), self.pace.tokens_a_second
            self.pace = Pace(
                self.pace.batches + 1,
                self.pace.sentences + len(batch),
                self.pace.tokens + tokens,
                self.pace.seconds + seconds,
                before * _REMEMBERED + now * (1 - _REMEMBERED) if before else now,
            )
