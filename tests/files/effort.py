"""How the time that a file takes grows with it."""

from __future__ import annotations

import time
from collections.abc import Callable

from qkv.files import translate_file
from tests.files.translations import loud

LINEAR = 32
"""The most that `growth` is of what is linear, on a machine that is busy; what grows with the square has 64."""


def growth(made: Callable[[int], bytes], name: str, size: int) -> float:
    """How many times as long a file takes that has eight times as many of something."""
    small, large = (_seconds(made(count), name) for count in (size, 8 * size))
    # Below this, other things than the file are measured.
    return large / max(small, 0.004)


def _seconds(data: bytes, name: str) -> float:
    begin = time.process_time()
    translate_file(data, name, loud, target="fr")
    return time.process_time() - begin
