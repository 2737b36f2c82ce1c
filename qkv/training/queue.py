"""How work gets to a device: a CPU does it at once; a GPU gets it in a queue, and answers when it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Answer(NamedTuple):
    """What came of a piece of work."""

    numbers: list[float]
    idle: float
    """Seconds that the device had nothing to do before it; after a stop for something else, such as a report, none are
    counted."""


class Queue(Protocol):
    def put(
        self, given: Sequence[Tensor], place: Sequence[Tensor], work: Callable[[], None], answer: Tensor
    ) -> Callable[[], Answer]:
        """Copies what is given to its place on the device and works on it; the call that comes back waits for what
        `answer` holds then."""

    def wait(self) -> None:
        """Returns when all is done."""


class AtOnce:
    """A CPU's queue is always empty."""

    def put(
        self, given: Sequence[Tensor], place: Sequence[Tensor], work: Callable[[], None], answer: Tensor
    ) -> Callable[[], Answer]:
        for tensor, own in zip(given, place, strict=True):
            own.copy_(tensor)
        work()
        done = Answer(answer.tolist(), 0.0)
        return lambda: done

    def wait(self) -> None:
        return


class GpuQueue:
    """A stream of its own, where one piece of work follows the other without a gap if the next is put in time; what
    it needs is brought to the device meanwhile."""

    def __init__(self, device: torch.device) -> None:
        self._working, self._bringing = _streams(device)
        self._brought: list[Tensor] = []
        self._taken = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._last_end: torch.cuda.Event | None = None

    def put(
        self, given: Sequence[Tensor], place: Sequence[Tensor], work: Callable[[], None], answer: Tensor
    ) -> Callable[[], Answer]:
        with torch.cuda.stream(self._bringing):
            if [one.shape for one in self._brought] != [one.shape for one in place]:
                self._brought = [torch.empty_like(own) for own in place]
            self._bringing.wait_event(self._taken)
            for tensor, brought in zip(given, self._brought, strict=True):
                brought.copy_(tensor.pin_memory(), non_blocking=True)
        # Validating and saving go by the stream of everybody else.
        self._working.wait_stream(torch.cuda.current_stream(answer.device))
        with torch.cuda.stream(self._working):
            self._working.wait_stream(self._bringing)
            torch._foreach_copy_(list(place), self._brought)
            self._taken.record()
            before, start = self._last_end, _time()
            work()
            numbers = torch.empty(answer.shape, pin_memory=True).copy_(answer, non_blocking=True)
            self._last_end = end = _time()

        def wait() -> Answer:
            end.synchronize()
            idle = 0.0 if before is None else before.elapsed_time(start) / 1000
            return Answer(numbers.tolist(), idle)

        return wait

    def wait(self) -> None:
        self._working.synchronize()
        # What comes next waits for something else than data.
        self._last_end = None


@cache
def _streams(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """One to work and one to bring what is worked on; the same for every run of a process, since for each stream that
    multiplies matrices 32 MB are kept for good."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _time() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
