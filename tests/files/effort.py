"""How the time that a file takes grows with it."""

from __future__ import annotations

import gc
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
    """The same of any work on what is made; measured again where others kept the machine busy."""
    measured = (_growth(made(size), made(8 * size), work) for _ in range(3))
    return next((ratio for ratio in measured if ratio < LINEAR), 8.0 * LINEAR)


def _growth(small: Made, large: Made, work: Callable[[Made], object]) -> float:
    # Below this, other things than the work are measured.
    return _seconds(large, work) / max(_seconds(small, work), 0.004)


def _seconds(made: Made, work: Callable[[Made], object]) -> float:
    gc.disable()
    begin = time.process_time()
    work(made)
    seconds = time.process_time() - begin
    gc.enable()
    return seconds
