"""Memory that is used again: what the system gives anew takes longer to get than to fill."""

from __future__ import annotations

import math
import weakref
from threading import Lock

import numpy as np

from qkv.search.engine import Floats

_KEPT = 1 << 26
"""Numbers that are kept for the next at most: 256 MB."""


class Pool:
    """Lends arrays; their memory comes back when nobody has them any more."""

    def __init__(self) -> None:
        self._free: list[Floats] = []
        self._lock = Lock()

    def array(self, shape: tuple[int, ...]) -> Floats:
        """An array of this shape, of whatever numbers."""
        size = math.prod(shape)
        memory = self._memory(size)
        # Its views refer to the array that is lent, and not past it to the memory, which is no array in their eyes.
        lent = np.frombuffer(memory.data, np.float32, count=size)
        weakref.finalize(lent, self._take_back, memory)
        return lent.reshape(shape)

    def _memory(self, size: int) -> Floats:
        with self._lock:
            # The smallest that is large enough; if there is none, a larger one takes the place of the largest.
            sizes = [memory.size for memory in self._free]
            enough = [number for number, each in enumerate(sizes) if each >= size]
            found = min(enough, key=sizes.__getitem__, default=None)
            if found is not None:
                return self._free.pop(found)
            if sizes:
                self._free.pop(max(range(len(sizes)), key=sizes.__getitem__))
        return np.empty(1 << max(size - 1, 0).bit_length(), np.float32)

    def _take_back(self, memory: Floats) -> None:
        # Any thread may come to this at any time, even while it holds the lock: so there is none here.
        if sum(one.size for one in tuple(self._free)) + memory.size <= _KEPT:
            self._free.append(memory)
