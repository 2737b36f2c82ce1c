"""The engine room: one for each translator, where sentences of many requests are translated together.

Two threads take batches. One has the sentences of usual length, the other the long ones, so that somebody's endless
sentence delays nobody else's short one by more than its share of the cores.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qkv.errors import RuleError
from qkv.serve.telling import LOG
from qkv.translate import Terms, Translation, Translator

_LONG = 80
"""Tokens: a sentence of more is a long one."""
_REMEMBERED = 0.98
"""What is left of a speed that was reached, with every slower batch: small ones do not show what is possible."""


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
    """The sentences of one request; `settled` is called once, by a thread of the room, unless the job is abandoned."""

    def __init__(self, how: How, settled: Callable[[list[Translation] | Exception], None]) -> None:
        self.how = how
        self.abandoned = False
        self.waiting: tuple[deque[Sentence], deque[Sentence]] = (deque(), deque())
        """Those of usual length, and long ones."""
        self.count = 0
        self._settled = settled
        self._found: dict[int, Translation] = {}

    def add(self, text: str, size: int, terms: Terms | None) -> None:
        self.waiting[size > _LONG].append(Sentence(text, size, terms, self, self.count))
        self.count += 1

    def found(self, some: Iterable[tuple[int, Translation]]) -> None:
        """Some of its sentences are translated."""
        self._found.update(some)
        if len(self._found) == self.count and not self.abandoned:
            self._settled([self._found[place] for place in range(self.count)])

    def fail(self, error: Exception) -> None:
        if not self.abandoned:
            self._settled(error)


@dataclass(frozen=True)
class Pace:
    """What a room has done."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0
    tokens_a_second: float = 0.0
    """What it can do, by the best of its last batches."""


class Room:
    """A translator and the sentences that wait for it."""

    def __init__(
        self, translator: Translator, *, batch_tokens: int, batch_wait: float, expecting: Callable[[], bool]
    ) -> None:
        """While `expecting` says that others come, a batch waits for them: `batch_wait` seconds at most."""
        self.translator = translator
        self.pace = Pace()
        self._batch_tokens = batch_tokens
        self._batch_wait = batch_wait
        self._expecting = expecting
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        for long in (False, True):
            threading.Thread(target=self._work, args=(long,), daemon=True).start()

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

    def _work(self, long: bool) -> None:
        while True:
            batch = self._next(long)
            begun = time.monotonic()
            jobs = {id(one.job): one.job for one in batch}.values()
            try:
                found = self._translated(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others who wait must be served
                LOG.exception("a batch of %d sentences failed", len(batch))
                for job in jobs:
                    job.fail(error)
                    self.abandon(job)
                continue
            self._measure(batch, time.monotonic() - begun)
            for job in jobs:
                job.found((one.place, each) for one, each in zip(batch, found, strict=True) if one.job is job)

    def _next(self, long: bool) -> list[Sentence]:
        """The sentences that are translated next, when there are some."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: any(job.waiting[long] for job in self._jobs))
                until = time.monotonic() + self._batch_wait
                while self._expecting() and (left := until - time.monotonic()) > 0:
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
        self._take(batch, long)
        return batch

    def _take(self, batch: Sequence[Sentence], long: bool) -> None:
        """These leave the queue."""
        taken = {id(one) for one in batch}
        for job in {id(one.job): one.job for one in batch}.values():
            left = [one for one in job.waiting[long] if id(one) not in taken]
            job.waiting[long].clear()
            job.waiting[long].extend(left)
            if not any(job.waiting):
                self._jobs.remove(job)

    def _translated(self, batch: Sequence[Sentence]) -> list[Translation]:
        how = batch[0].job.how
        terms = [one.terms for one in batch]
        while True:
            try:
                return self.translator.translate(
                    [one.text for one in batch],
                    beam=how.beam,
                    alternatives=how.alternatives,
                    align=how.align,
                    terms=terms if any(terms) else None,
                    abandoned=lambda number: batch[number].job.abandoned,
                )
            except RuleError as error:
                # What should stay as it is cannot: the translation is worth more than that.
                terms[error.sentence] = None

    def _measure(self, batch: Sequence[Sentence], seconds: float) -> None:
        tokens = sum(one.size for one in batch)
        with self._changed:
            before = self.pace
            self.pace = Pace(
                before.batches + 1,
                before.sentences + len(batch),
                before.tokens + tokens,
                before.seconds + seconds,
                max(tokens / max(seconds, 1e-6), before.tokens_a_second * _REMEMBERED),
            )
