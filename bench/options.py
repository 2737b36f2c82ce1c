"""What options of several benchmarks have to be."""

from __future__ import annotations

import argparse
import math


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
