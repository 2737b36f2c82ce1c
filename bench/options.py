"""What options of several benchmarks have to be, and how a benchmark ends that was given wrong ones."""

from __future__ import annotations

import argparse
import math
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from bench.sentences import SPECIAL
from qkv.errors import QkvError, Stopped, StorageError


def told(name: str, work: Callable[[], int | None]) -> int:
    """The exit code of a benchmark; what goes wrong for its user is one line on standard error."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        # A signal that is ignored, as under nohup, stays ignored.
        for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
            signal.signal(number, _stop)
        code = work() or 0
        # What is still held back may have no reader, either.
        sys.stdout.flush()
        return code
    except QkvError as error:
        message, code = str(error), error.exit_code
    except KeyboardInterrupt:
        message, code = "stopped", 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read the output has gone; Python would complain once more while closing it.
        sys.stdout = None
        return 128 + signal.SIGPIPE
    except OSError as error:
        why = error.strerror or str(error)
        message, code = f"{error.filename}: {why}" if error.filename else why, StorageError.exit_code
    except Exception as error:
        stopped = _stopped_under(error)
        if stopped is None:
            raise
        message, code = str(stopped), stopped.exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    print(f"{name}: {message}", file=sys.stderr)
    return code


def _stop(number: int, _: FrameType | None) -> NoReturn:
    """So that folders made for a while are removed."""
    raise Stopped(f"stopped by {signal.Signals(number).name}", code=128 + number)


def _stopped_under(error: BaseException | None) -> Stopped | None:
    """Triton's interpreter and torch's compiler make errors of their own of whatever is raised while they work."""
    while error is not None and not isinstance(error, Stopped):
        # The compiler leaves the cause out.
        error = error.__cause__ or error.__context__
    return error


def above_zero(text: str) -> float:
    """A number of seconds, or of anything else of which there is some."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def one_or_more(text: str) -> int:
    """A number of steps, or of anything else that is counted."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def more_than_marks(text: str) -> int:
    """A number of subwords, some of which have to be words."""
    number = one_or_more(text)
    if number <= SPECIAL:
        raise argparse.ArgumentTypeError(f"{text!r} has no words: the first {SPECIAL} ids are marks")
    return number
