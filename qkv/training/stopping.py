"""When a run stops before its steps are done: because it is asked to by a signal, or because its time is up."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from qkv.errors import NoTimeError, QkvError, Stopped
from qkv.progress import duration

TIME_IS_UP, SIGNAL = 1.0, 1e6
"""What asks to stop. Several processes add these up: a signal to one of them outweighs the clocks of all."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a keyboard, a queue and a terminal that is closed send."""
CAUTION = 1.5
"""What is still to be done may take this many times what it took before: disks and machines are shared."""
_RECENT_STEPS = 100
_RING_AGAIN = 0.2
"""Seconds after which time that is up says so again: where a finalizer ran meanwhile, Python passes over errors."""


@contextmanager
def in_time(deadline: float | None, too_late: QkvError) -> Iterator[None]:
    """Inside, time that is up ends the work with this error, wherever it is, as an interrupt would."""
    if deadline is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    rang = False

    def ring(*_: object) -> None:
        nonlocal rang
        rang = True
        # What clears up on its way out is left to do so.
        if not _is_behind(too_late, sys.exception()):
            raise too_late

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with _unheard(too_late):
            # Nothing is left of a time that has passed; but 0 would mean never.
            signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-6), _RING_AGAIN)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if rang:
        raise too_late


def _is_behind(error: BaseException, handled: BaseException | None) -> bool:
    """Whether this error is being handled, or another that came of it."""
    return handled is not None and (handled is error or _is_behind(error, handled.__context__))


@contextmanager
def _unheard(error: BaseException) -> Iterator[None]:
    """Inside, Python does not print that it passed over this error in a finalizer: it will be raised again."""
    before = sys.unraisablehook

    def told(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_value is not error:
            before(lost)

    sys.unraisablehook = told
    try:
        yield
    finally:
        sys.unraisablehook = before


class Stopping:
    """Whether training is to stop after the step under way, and why."""

    def __init__(self, deadline: float | None = None, *, got_on: bool = False) -> None:
        self._deadline = deadline
        self._got_on = got_on
        self._received: signal.Signals | None = None
        self._interrupted = False
        self._steps: deque[float] = deque(maxlen=_RECENT_STEPS)
        self._expected: dict[str, float] = {}
        self._longest: dict[str, float] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Inside, these signals are requests to stop; a second SIGINT ends the process at once."""
        # Python hands signals to the main thread alone. A signal that is ignored, as under nohup, stays ignored.
        heard = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.getsignal(number) for number in heard}
        try:
            for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
                signal.signal(number, self._receive)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self._interrupted:
            # Not by an exception, which would wait for threads that write; what they leave half done is never read.
            os.write(2, b"\nqkv: left at once; the same command goes on after the last checkpoint\n")
            os._exit(128 + number)
        self._received = self._received or signal.Signals(number)
        if number == signal.SIGINT:
            self._interrupted = True
            os.write(2, b"\nqkv: stopping after this step, which is saved; interrupt again to leave at once\n")

    @property
    def timed(self) -> bool:
        """Whether there is a time to stop by."""
        return self._deadline is not None

    @property
    def signalled(self) -> bool:
        """Whether a signal has asked this process to stop."""
        return self._received is not None

    def expect(self, what: str, seconds: float) -> None:
        """Says how long something may take, which counts until it is known."""
        self._expected[what] = seconds

    def took(self, what: str, seconds: float) -> None:
        """Remembers how long something took that will have to be done again before the end."""
        if what == "step":
            self._steps.append(seconds)
        else:
            self._longest[what] = max(seconds, self._longest.get(what, 0.0))

    def asked(self, *, still_to_do: tuple[str, ...]) -> float:
        """What asks to stop here, where these things would still have to fit: 0, `TIME_IS_UP` or `SIGNAL`."""
        if self._received is not None:
            return SIGNAL
        return TIME_IS_UP if self._time_is_up(still_to_do) else 0.0

    def _time_is_up(self, still_to_do: tuple[str, ...]) -> bool:
        if self._deadline is None:
            return False
        return time.monotonic() + CAUTION * sum(map(self._seconds_of, still_to_do)) >= self._deadline

    def _seconds_of(self, what: str) -> float:
        if what == "step":
            return max(self._steps, default=0.0)
        return self._longest.get(what, self._expected.get(what, 0.0))

    def explain(self, step: int, asked: float) -> str:
        """Tells why training stopped here and how it goes on; raises `Stopped` where a signal asked for it, and
        `NoTimeError` where it would stop here every time.

        `asked` is what asked for it, summed over all processes.
        """
        where = f"after step {step:,}, which is saved" if step else "before the first step"
        if self._received is not None:
            raise Stopped(
                f"stopped by {self._received.name} {where}; the same command goes on", code=128 + self._received
            )
        if asked >= SIGNAL:
            raise Stopped(f"stopped by a signal to another process {where}; the same command goes on", code=143)
        assert self._deadline is not None
        if not (self._got_on or self._steps or "validation" in self._longest):
            raise NoTimeError(f"its time was up {where}, and nothing was learned in it; give more time")
        left = duration(max(0.0, self._deadline - time.monotonic()))
        return f"stopped {where}, {left} before its time was up; the same command goes on"
