"""What several threads have in hand at once."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from qkv.serve.glossaries import Glossaries
from qkv.serve.languages import Direction
from qkv.serve.room import How, Job
from qkv.serve.state import State
from qkv.translate import Translation

DIRECTION = Direction("en", "fr")


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*works: Callable[[], None]) -> None:
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], None]) -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=begin, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def job(settled: Callable[[list[Translation] | Exception], None]) -> Job:
    """One of two sentences; nobody translates them."""
    made = Job(None, How(1, 0, align=False), settled)  # type: ignore[arg-type]
    made.add("basa", 1, None)
    made.add("koti", 1, None)
    return made


class Late(dict[int, Translation]):
    """What was found, when both have said what they found before either goes on."""

    def __init__(self, barrier: threading.Barrier) -> None:
        super().__init__()
        self._barrier = barrier

    def __len__(self) -> int:
        # Where the other one is held outside, as it should be, it is not waited for.
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(0.2)
        return super().__len__()


def test_a_job_is_settled_once_by_two_that_finish_together() -> None:
    found: list[list[Translation] | Exception] = []
    one = job(found.append)
    one._found = Late(threading.Barrier(2))
    texts = [Translation(text, 0.0, complete=True) for text in ("asab", "itok")]
    at_once(lambda: one.found([(0, texts[0])]), lambda: one.found([(1, texts[1])]))
    assert found == [texts]


def test_a_job_that_fails_twice_or_is_done_nevertheless_is_settled_once() -> None:
    found: list[list[Translation] | Exception] = []
    one, error = job(found.append), ValueError("broken")
    one.fail(error)
    one.fail(ValueError("broken, too"))
    one.found([(place, Translation("asab", 0.0, complete=True)) for place in range(2)])
    assert found == [error]


def test_glossaries_are_listed_while_others_come_and_go() -> None:
    glossaries = Glossaries(State(None))
    for _ in range(300):
        glossaries.add("alice", "mine", DIRECTION, {"a": "b"})
    over = threading.Event()
    counts: list[int] = []

    def change() -> None:
        while not over.is_set():
            glossaries.remove("bob", glossaries.add("bob", "his", DIRECTION, {"a": "b"}).number)

    def look() -> None:
        try:
            counts.extend(len(glossaries.of("alice")) for _ in range(500))
        finally:
            over.set()

    at_once(change, look)
    assert counts == [300] * 500
