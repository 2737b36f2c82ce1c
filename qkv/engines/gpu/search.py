"""Beam search with a length penalty, wholly on the device: `GpuSearch(model).find(sources, limits, ...)`.

The same search as `search.beam`, hypothesis by hypothesis in float32. A table has places for some sentences; steps are
taken without asking what came of them, and every few steps the host looks at who had settled some steps ago. Places
that became free are taken by sentences that wait; when none do, those left move to a smaller table.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkv.devices import Captured, choose_kernels
from qkv.engines.gpu.decoder import Decoder
from qkv.engines.gpu.table import Read, Table
from qkv.errors import NotFiniteError
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.hypothesis import Hypothesis, Limits, Penalty

PLACES = (1, 8, 32, 128, 512)
"""Sentences that a table may have places for: few sizes, since each is captured as a graph of its own."""
_SMALLEST = 128
"""Positions that a table has at least; beyond, powers of two."""
_SLOTS = 512 * 4 * 256
"""Of one table, at most: with the keys and values of a position in each, 6 GB for the base model in bfloat16."""
_SHARE = 5
"""Of the memory that is free, one table may take a fifth: there are several, and each has room to compute in."""
_STEPS = 2
"""Between two looks."""
_FREE = 4
"""Who waits is seated when a fourth of the places are free: a few at a time cost as much as many."""
_NOBODY = -1

Wait = Callable[[], list[NDArray[Any]]]


class GpuSearch:
    """A model that searches on its device, in its own precision or another; tables and graphs are kept for the next
    search of the same kind, and are one search's at a time."""

    def __init__(
        self,
        model: EncoderDecoder,
        *,
        precision: torch.dtype | None = None,
        kernels: bool | None = None,
        captured: bool | None = None,
    ) -> None:
        device = model.inputs.weight_VD.device
        self._captured = device.type == "cuda" if captured is None else captured
        self._decoder = Decoder(
            model,
            precision=model.inputs.weight_VD.dtype if precision is None else precision,
            kernels=choose_kernels("auto", device) if kernels is None else kernels,
        )
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        if self._stream is not None:
            # The model's copy is made by the stream of everybody else.
            self._stream.wait_stream(torch.cuda.current_stream(device))
        self._slots = min(_SLOTS, self._decoder.free_slots() // _SHARE)
        self._stations: dict[tuple[int, int, int, int], _Station] = {}
        self._searching = threading.Lock()

    @torch.inference_mode()
    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Limits,
        *,
        width: int,
        penalty: Penalty,
        keep: int = 1,
        abandoned: Callable[[int], bool] | None = None,
    ) -> list[list[Hypothesis]]:
        """As `WholeSearch.find`."""
        found: list[list[Hypothesis]] = [[] for _ in sources]
        with self._searching, torch.cuda.stream(self._stream):
            for size, numbers in self._by_size(sources, limits, width):
                hall = _Hall(self._stations_of(size, width, keep, limits, penalty), self._decoder, abandoned)
                for number, hypotheses in hall.serve(numbers, sources, limits, penalty):
                    if not hypotheses:
                        raise NotFiniteError
                    found[number] = hypotheses
        return found

    def _by_size(self, sources: Sequence[Sequence[int]], limits: Limits, width: int) -> Iterator[tuple[int, list[int]]]:
        """The sentences' numbers, by the positions that a table for them needs; the begin takes one too.

        Small ones sit with large ones if memory has places for all: time is lost where few are left to search.
        """
        sizes: dict[int, list[int]] = {}
        for number, (source, longest) in enumerate(zip(sources, limits.longest, strict=True)):
            needed = max(len(source), longest + 1, _SMALLEST)
            sizes.setdefault(1 << (needed - 1).bit_length(), []).append(number)
        together: list[int] = []
        for size in sorted(sizes):
            together += sizes[size]
            larger = min((other for other in sizes if other > size), default=None)
            if larger is None or min(len(together), PLACES[-1]) * larger * width > self._slots:
                yield size, together
                together = []

    def _stations_of(
        self, size: int, width: int, keep: int, limits: Limits, penalty: Penalty
    ) -> Callable[[int], _Station]:
        """Where so many sentences of this size, or as many of them as memory has places for, are searched."""
        allowed = [places for places in PLACES if places * size * width <= self._slots] or [PLACES[0]]
        asked: set[int] = set()

        def station(sentences: int) -> _Station:
            places = next((places for places in allowed if places >= sentences), allowed[-1])
            key = (places, size, width, keep)
            if key not in self._stations:
                self._make_room(size, width, keep)
                table = self._decoder.table(sentences=places, size=size, width=width, keep=keep)
                self._stations[key] = _Station(table, self._decoder, captured=self._captured)
            if places not in asked:
                asked.add(places)
                self._stations[key].table.ask(end=limits.end, forbidden=limits.forbidden, penalty=penalty)
            return self._stations[key]

        return station

    def _make_room(self, size: int, width: int, keep: int) -> None:
        """Lets go of the tables of other searches when they take as much as two of the largest would."""
        if sum(places * length * beam for places, length, beam, _ in self._stations) > 2 * self._slots:
            others = [key for key in self._stations if key[1:] != (size, width, keep)]
            for key in others:
                del self._stations[key]


class _Station:
    """A table and the step it takes."""

    def __init__(self, table: Table, decoder: Decoder, *, captured: bool) -> None:
        self.table = table
        self.places = table.last_NB.size(0)
        # The step does not know the station: in a circle, a table would keep its memory when it is let go of.
        step = partial(_take_step, table, decoder)
        self.step: Callable[[], None] = Captured(step) if captured else step


def _take_step(table: Table, decoder: Decoder) -> None:
    count = 2 * table.score_NB.size(1)
    logits_RV = decoder.logits(table)
    table.advance(decoder.best(logits_RV, table.score_NB, table.rules.barred_V, count))


class _Look(NamedTuple):
    """Who sat where when it was asked who was alive."""

    sitting: NDArray[np.int64]
    alive: Wait


class _Hall:
    """Sentences of one size that are searched together: who sits where, and who waits."""

    def __init__(
        self,
        station_for: Callable[[int], _Station],
        decoder: Decoder,
        abandoned: Callable[[int], bool] | None,
    ) -> None:
        self._station_for = station_for
        self._decoder = decoder
        self._abandoned = abandoned

    def serve(
        self, numbers: list[int], sources: Sequence[Sequence[int]], limits: Limits, penalty: Penalty
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Each sentence's number and hypotheses, as they are found; nothing of those that were given up."""
        station = self._station_for(len(numbers))
        sitting = np.full(station.places, _NOBODY)
        waiting = _Waiting(numbers, sources, limits, self._decoder, at_once=station.places)
        looks: deque[_Look] = deque()
        told: deque[tuple[NDArray[np.int64], Wait]] = deque()
        while True:
            if self._abandoned is not None:
                waiting.give_up(self._abandoned)
                # The table goes on with them until others sit there: nobody looks at what comes of it.
                sitting[[number != _NOBODY and self._abandoned(number) for number in sitting.tolist()]] = _NOBODY
            if not waiting and (sitting == _NOBODY).all():
                break
            free = np.flatnonzero(sitting == _NOBODY)
            taken = len(sitting) - len(free)
            if waiting and len(free) * _FREE >= len(sitting):
                coming, source, longest_N = waiting.next(len(free))
                places = free[: len(coming)]
                station.table.seat(self._there(places), source, longest_N, begin=limits.begin)
                sitting[places] = coming
            elif not waiting and (smaller := self._station_for(taken)).places < station.places:
                places = np.flatnonzero(sitting != _NOBODY)
                station.table.move(self._there(places), smaller.table)
                station, sitting = smaller, np.append(sitting[places], np.full(smaller.places - taken, _NOBODY))
                # Looks at the old table; who has left by then is seen at the new one.
                looks.clear()
            for _ in range(_STEPS):
                station.step()
            looks.append(_Look(sitting.copy(), _fetched(station.table.alive())))
            # The device has the next steps to do while the host looks at what came of the last.
            if len(looks) > 1:
                look = looks.popleft()
                settled = (look.sitting == sitting) & (sitting != _NOBODY) & ~look.alive()[0]
                places = np.flatnonzero(settled)
                if len(places):
                    told.append((sitting[places], _fetched(*station.table.answers(self._there(places)))))
                    sitting[places] = _NOBODY
            if len(told) > 1:
                yield from _hypotheses(*told.popleft(), limits, penalty)
        for leaving, answers in told:
            yield from _hypotheses(leaving, answers, limits, penalty)

    def _there(self, places: NDArray[np.int64]) -> Tensor:
        return _sent(places, self._decoder.device)


class _Waiting:
    """Sentences that wait for a place; their sources are read before, many at once."""

    def __init__(
        self, numbers: list[int], sources: Sequence[Sequence[int]], limits: Limits, decoder: Decoder, *, at_once: int
    ) -> None:
        # The longest first, so that those that end last, when places stay free, are short.
        self._numbers = deque(sorted(numbers, key=lambda number: -len(sources[number])))
        self._sources = sources
        self._limits = limits
        self._decoder = decoder
        self._at_once = at_once
        self._read: tuple[NDArray[np.int64], Read] | None = None

    def __bool__(self) -> bool:
        return bool(self._numbers) or self._read is not None

    def give_up(self, abandoned: Callable[[int], bool]) -> None:
        """Those whose sources are not read yet leave; the others will be seen where they sit."""
        self._numbers = deque(number for number in self._numbers if not abandoned(number))

    def next(self, most: int) -> tuple[NDArray[np.int64], Read, Tensor]:
        """At most so many: their numbers, their sources, and how many tokens each may have."""
        if self._read is None:
            some = [self._numbers.popleft() for _ in range(min(self._at_once, len(self._numbers)))]
            self._read = np.array(some), self._decoder.read([self._sources[number] for number in some])
        numbers, source = self._read
        self._read = None if len(numbers) <= most else (numbers[most:], Read(*(part[most:] for part in source)))
        longest = np.array([self._limits.longest[number] for number in numbers[:most]])
        return numbers[:most], Read(*(part[:most] for part in source)), _sent(longest, self._decoder.device)


def _hypotheses(
    numbers: NDArray[np.int64], answers: Wait, limits: Limits, penalty: Penalty
) -> Iterator[tuple[int, list[Hypothesis]]]:
    every_score, *parts = answers()
    if np.isnan(every_score).any():
        raise NotFiniteError
    for number, scores, words, ids, scored in zip(numbers.tolist(), every_score.tolist(), *parts, strict=True):
        longest = limits.longest[number]
        yield (
            number,
            [
                _hypothesis(score, ids[place, :count].tolist(), scored[place, :count].tolist(), longest, penalty)
                for place, (score, count) in enumerate(zip(scores, words.tolist(), strict=True))
                if score > -np.inf
            ],
        )


def _hypothesis(score: float, ids: list[int], scored: list[float], longest: int, penalty: Penalty) -> Hypothesis:
    """Of what it scored with every word, and in the end."""
    complete = len(ids) < longest
    log_probability = score * penalty(len(ids) + complete)
    scored = [0.0, *scored, *([log_probability] if complete else [])]
    return Hypothesis(ids, log_probability, score, complete, np.diff(scored).tolist())


def _sent(numbers: NDArray[np.int64], device: torch.device) -> Tensor:
    """The numbers on the device, without waiting for it."""
    tensor = torch.from_numpy(numbers)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def _fetched(*tensors: Tensor) -> Wait:
    """Brings tensors to the host; what comes back waits for them."""
    if not tensors[0].is_cuda:
        arrays = [tensor.numpy().copy() for tensor in tensors]
        return lambda: arrays
    here = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in tensors]
    for own, tensor in zip(here, tensors, strict=True):
        own.copy_(tensor, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()

    def wait() -> list[NDArray[Any]]:
        arrived.synchronize()
        return [own.numpy() for own in here]

    return wait
