"""Memory that is lent and comes back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from qkv.engines import memory
from qkv.engines.memory import Pool
from qkv.search.engine import Floats


def address(array: Floats) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_comes_back_when_the_last_view_of_it_is_gone() -> None:
    pool = Pool()
    first = pool.array((3, 5))
    place, view = address(first), first[1:].T
    del first
    other = pool.array((3, 5))
    assert address(other) != place
    del view
    assert address(pool.array((2, 7))) == place


def test_what_is_lent_is_nobody_elses() -> None:
    pool = Pool()

    def filled(number: int) -> bool:
        for size in np.random.default_rng(number).integers(0, 300, 400).tolist():
            array = pool.array((size,))
            array[:] = number
            if (array != number).any():
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(filled, range(4)))


def test_no_more_is_kept_than_was_lent_at_once_nor_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    for size in (10, 100, 1000):
        pool.array((size,))
    assert [one.size for one in pool._free] == [1024]
    monkeypatch.setattr(memory, "_KEPT", 1500)
    several = [pool.array((1000,)) for _ in range(3)]
    del several
    assert len(pool._free) == 1
