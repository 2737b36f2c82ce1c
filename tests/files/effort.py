"""How the time that a file takes grows with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from qkv.files import translate_file
from tests.files.translations import loud

Made = TypeVar("Made")

LINEAR = 32
"""The most that `growth` is of what is linear, on a machine that is busy; what grows with the square has 64."""


def growth(made: Callable[[int], bytes], name: str, size: int) -> float:
    """How many times as long a file takes that has eight times as many of something."""
    return growth_of(made, lambda data: translate_file(data, name, loud, target="fr"), size)


def growth_of(made: Callable[[int], Made], work: Callable[[Made], object], size: int) -> float:
    """The same of any work on what is made."""
    small, large = (_seconds(made(count), work) for count in (size, 8 * size))
    # Below this, other things than the work are measured.
    return large / max(small, 0.004)


def _seconds(made: Made, work: Callable[[Made], object]) -> float:
    begin = time.process_time()
    work(made)
    return time.process_time() - begin
