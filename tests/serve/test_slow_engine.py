"""An engine that is slow, busy with something endless, or stuck: what becomes of whoever waits, and of all others."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.serve.served import Served, answered, connected, eventually, posted, serving

LONG = "\n".join(["basa koti rimo nesa lumo badu"] * 200)
"""What takes a while."""
ENDLESS = "汉" * 900
"""A sentence of thousands of bytes, each a token of its own: the model has not learned to end what it says to that."""


@contextlib.contextmanager
def slowed(served: Served, share: float) -> Iterator[None]:
    """The process that translates works for this share of the time: it is stopped for the rest."""
    over = threading.Event()
    worker = served.worker

    def slow_down() -> None:
        # It may have ended with its server.
        with contextlib.suppress(ProcessLookupError):
            while not over.wait(0.1 * share):
                os.kill(worker, signal.SIGSTOP)
                over.wait(0.1 * (1 - share))
                os.kill(worker, signal.SIGCONT)

    thread = threading.Thread(target=slow_down)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_while_the_engine_does_nothing_others_are_refused_and_do_not_wait_for_their_deadline(exported: Path) -> None:
    with serving(exported, "--queue-seconds", "0.5") as served, concurrent.futures.ThreadPoolExecutor(1) as threads:
        assert served.translate("basa koti").status == 200
        os.kill(served.worker, signal.SIGSTOP)
        first = threads.submit(served.translate, "basa koti")
        assert eventually(lambda: served.metric("orders") == 1)
        time.sleep(1)
        begun = time.monotonic()
        late = served.translate("basa koti")
        assert (late.status, time.monotonic() - begun < 20) == (429, True)
        os.kill(served.worker, signal.SIGCONT)
        assert first.result().status == 200
        assert served.translate("basa koti").status == 200


def test_a_slow_engine_is_waited_for_within_limits_and_loses_nothing(exported: Path) -> None:
    options = ("--deadline", "2", "--queue-seconds", "5", "--batch-tokens", "256", "--drain-delay", "0")
    with serving(exported, *options) as served:
        assert served.translate("basa koti").status == 200
        with slowed(served, 0.1), concurrent.futures.ThreadPoolExecutor(1) as threads:
            # Whoever asks for too much hears of it in time, and the work is given up.
            begun = time.monotonic()
            late = threads.submit(served.translate, LONG * 4)
            assert eventually(lambda: served.metric("orders") == 1)
            health = []
            while not late.done():
                asked = time.monotonic()
                assert served.get("/health").status == served.get("/ready").status == 200
                health.append(time.monotonic() - asked)
            assert (late.result().status, time.monotonic() - begun < 10) == (504, True)
            assert sorted(health)[len(health) // 2] < 1
            assert served.metric("given_up_total") == 1
            assert eventually(lambda: served.metric("orders") == 0)
            # Whoever leaves is not worked for.
            with connected(served) as connection:
                connection.sendall(posted(LONG * 4))
                assert eventually(lambda: served.metric("orders") == 1)
            assert eventually(lambda: served.metric("disconnects_total") == 1)
            assert eventually(lambda: served.metric("orders") == 0)
            assert served.metric("sentences_total") < 400
            # Whoever asks for little has it, also from a server that is stopped meanwhile.
            assert served.translate("basa koti").json == {"translatedText": "itok asab"}
            with connected(served) as connection:
                connection.sendall(posted("basa koti"))
                assert eventually(lambda: served.metric("orders") == 1 or served.metric("sentences_total") > 0)
                served.process.send_signal(signal.SIGTERM)
                assert b"itok asab" in answered(connection)
            assert served.process.wait(30) == 143


def test_something_endless_keeps_nobody_else_out(exported: Path) -> None:
    with serving(exported, "--queue-seconds", "2", "--deadline", "30") as served, slowed(served, 0.5):
        with connected(served) as connection:
            connection.sendall(posted(ENDLESS))
            assert eventually(lambda: served.metric("orders") == 1)
            statuses = []
            until = time.monotonic() + 3
            while time.monotonic() < until and served.metric("orders") == 1:
                statuses.append(served.translate("basa koti").status)
        assert statuses and {*statuses} == {200}


def test_a_large_order_leaves_room_for_small_ones(exported: Path) -> None:
    with serving(exported, "--queue-tokens", "400", "--batch-tokens", "64") as served, connected(served) as large:
        large.sendall(posted(LONG * 3))
        assert eventually(lambda: served.metric("queued_tokens") > 400)
        assert served.translate("basa koti").json == {"translatedText": "itok asab"}
        assert served.metric("queued_tokens") > 400


def test_an_engine_that_is_stuck_is_begun_anew_and_one_that_has_nothing_to_say_is_not(exported: Path) -> None:
    with serving(exported, "--engine-timeout", "3", "--deadline", "5") as served:
        first = served.worker
        for _ in range(3):
            with connected(served) as connection:
                connection.sendall(posted("basa koti"))
        time.sleep(5)
        assert served.worker == first
        os.kill(first, signal.SIGSTOP)
        assert served.translate("basa koti").status in (503, 504)
        assert eventually(lambda: served.get("/ready").status == 503)
        assert eventually(lambda: served.get("/ready").status == 200, 60)
        assert served.worker != first
        assert served.translate("basa koti").json == {"translatedText": "itok asab"}
        assert "is stuck, and is ended" in served.log.read_text()
