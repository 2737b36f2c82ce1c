"""The engine room: sentences of many requests are translated together, those of all models in turn.

Three threads take batches. Two have the sentences of usual length, so that what one of them waits for (a core that
others use, the next step of a search) the other works in. One has the long ones, so that somebody's endless sentence
delays nobody else's short one by more than its share of the cores.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qkv.errors import RuleError
from qkv.serve.orders import size
from qkv.serve.telling import LOG
from qkv.translate import Terms, Translation, Translator

_LONG = 80
"""Tokens: a sentence of more is a long one."""
_LANES = (False, False, True)
"""The threads, and whether they take long ones."""
_WINDOW = 0.25
"""Seconds of work by which a speed is measured."""
_WEIGHT = 0.5
"""Of the latest speed in the one that counts: when the machine slows down, that is known after a few windows."""
_SIGN_OF_LIFE = 0.25
"""Seconds between two, while a batch goes on."""
_LONGEST_BATCH = 1.0
"""Seconds that a batch may take: whoever comes next waits for it."""
_LEAST_BATCH = 256
"""Tokens that are translated together however slow the machine is: with fewer it would be slower still."""


class How(NamedTuple):
    """How sentences are translated; those of one batch are translated alike."""

    beam: int
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

    def __init__(
        self, translator: Translator, how: How, settled: Callable[[list[Translation] | Exception], None]
    ) -> None:
        self.translator = translator
        self.how = how
        self.abandoned = False
        self.waiting: tuple[deque[Sentence], deque[Sentence]] = (deque(), deque())
        """Those of usual length, and long ones."""
        self.count = 0
        self._settled = settled
        self._found: dict[int, Translation] = {}
        # Two threads may have sentences of it in a batch each.
        self._changing = threading.Lock()
        self._is_settled = False

    def add(self, text: str, size: int, terms: Terms | None) -> None:
        self.waiting[size > _LONG].append(Sentence(text, size, terms, self, self.count))
        self.count += 1

    def found(self, some: Iterable[tuple[int, Translation]]) -> None:
        """Some of its sentences are translated."""
        with self._changing:
            self._found.update(some)
            is_whole = len(self._found) == self.count
        if is_whole:
            self._settle(lambda: [self._found[place] for place in range(self.count)])

    def fail(self, error: Exception) -> None:
        self._settle(lambda: error)

    def _settle(self, how: Callable[[], list[Translation] | Exception]) -> None:
        with self._changing:
            if self._is_settled or self.abandoned:
                return
            self._is_settled = True
        self._settled(how())

    def is_like(self, other: Job) -> bool:
        """Whether sentences of both can be in one batch."""
        return self.translator is other.translator and self.how == other.how


@dataclass(frozen=True)
class Pace:
    """What a room has done, and how quickly."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0
    tokens_a_second: float = 0.0
    """What it can do of late, in tokens as `orders.size` counts them; 0 until there was more to do than it did."""


class Meter:
    """Measures what several threads do together, in the time that any of them works."""

    def __init__(self) -> None:
        self.pace = Pace()
        self._lock = threading.Lock()
        self._working = 0
        self._since = 0.0
        self._seconds = 0.0
        """Of work since the speed was last measured."""
        self._size = 0
        self._busy = True
        """Whether others waited all that time: little work does not show what is possible."""

    @contextlib.contextmanager
    def batch(self, sentences: int, tokens: int, size: int, *, others: bool) -> Iterator[None]:
        """Around the work on so many, while others wait or not; what fails is not counted, its time is."""
        self._pass(1, others=others)
        try:
            yield
        except BaseException:
            self._pass(-1)
            raise
        self._pass(-1, sentences, tokens, size)

    def _pass(self, working: int, sentences: int = 0, tokens: int = 0, size: int = 0, *, others: bool = True) -> None:
        with self._lock:
            now, before = time.monotonic(), self.pace
            spent = now - self._since if self._working else 0.0
            self._working, self._since = self._working + working, now
            self._seconds, self._size, self._busy = self._seconds + spent, self._size + size, self._busy and others
            speed = before.tokens_a_second
            if self._size and self._seconds >= _WINDOW:
                latest = self._size / self._seconds
                if self._busy:
                    speed = speed + _WEIGHT * (latest - speed) if speed else latest
                elif speed:
                    speed = max(speed, latest)
                self._seconds, self._size, self._busy = 0.0, 0, True
            done = working < 0 and sentences > 0
            self.pace = Pace(
                before.batches + done,
                before.sentences + sentences,
                before.tokens + tokens,
                before.seconds + spent,
                speed,
            )


def most_positions(limit: int, rows: int, speed: float) -> int:
    """Positions of a batch whose sentences have so many rows each: what is done in a moment, within the limit."""
    soon = rows * max(_LEAST_BATCH, int(speed * _LONGEST_BATCH))
    return min(limit, soon) if speed else limit


class Room:
    """Where sentences wait until they are translated."""

    def __init__(
        self,
        *,
        batch_tokens: int,
        batch_wait: float,
        expecting: Callable[[], bool],
        measured: Callable[[Pace], None],
    ) -> None:
        """While `expecting` says that others come, a batch waits for them: `batch_wait` seconds at most.

        `measured` is called after every batch, before anybody has what was in it, and now and then while one goes on.
        """
        self._meter = Meter()
        self._batch_tokens = batch_tokens
        self._batch_wait = batch_wait
        self._expecting = expecting
        self._measured = measured
        self._last_sign = 0.0
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        for long in _LANES:
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
            batch, others = self._next(long)
            jobs = {id(one.job): one.job for one in batch}.values()
            try:
                tokens, counted = sum(one.size for one in batch), sum(size(one.text) for one in batch)
                with self._meter.batch(len(batch), tokens, counted, others=others):
                    found = self._translated(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others who wait must be served
                LOG.exception("a batch of %d sentences failed", len(batch))
                for job in jobs:
                    job.fail(error)
                    self.abandon(job)
                continue
            self._measured(self._meter.pace)
            for job in jobs:
                job.found((one.place, each) for one, each in zip(batch, found, strict=True) if one.job is job)

    def _next(self, long: bool) -> tuple[list[Sentence], bool]:
        """The sentences that are translated next, when there are some, and whether others wait."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: any(job.waiting[long] for job in self._jobs))
                until = time.monotonic() + self._batch_wait
                while self._expecting() and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
                if batch := self._choose(long):
                    return batch, bool(self._jobs)

    def _choose(self, long: bool) -> list[Sentence]:
        """The sentence whose turn it is, and others of like length: each request has its turn."""
        first = next((job for job in self._jobs if job.waiting[long]), None)
        if first is None:
            return []
        self._jobs.remove(first)
        self._jobs.append(first)
        turn = first.waiting[long][0]
        rows = first.how.beam
        alike = (one for job in self._jobs if job.is_like(first) for one in job.waiting[long])
        positions = most_positions(self._batch_tokens, rows, self._meter.pace.tokens_a_second)
        most = max(1, positions // rows)
        ranked = heapq.nsmallest(most, alike, key=lambda one: (one is not turn, abs(one.size - turn.size)))
        batch: list[Sentence] = []
        longest = 0
        for one in ranked:
            longest = max(longest, one.size)
            if batch and longest * rows * (len(batch) + 1) > positions:
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
        job = batch[0].job
        terms = [one.terms for one in batch]

        def abandoned(number: int) -> bool:
            # It is asked at every step: whoever waits hears that steps are taken, however long the sentence is.
            self._give_sign_of_life()
            return batch[number].job.abandoned

        while True:
            try:
                return job.translator.translate(
                    [one.text for one in batch],
                    beam=job.how.beam,
                    alternatives=job.how.alternatives,
                    align=job.how.align,
                    terms=terms if any(terms) else None,
                    abandoned=abandoned,
                )
            except RuleError as error:
                # What should stay as it is cannot: the translation is worth more than that.
                terms[error.sentence] = None

    def _give_sign_of_life(self) -> None:
        now = time.monotonic()
        if now - self._last_sign > _SIGN_OF_LIFE:
            self._last_sign = now
            self._measured(self._meter.pace)
