"""What breaks servers: load, silence, lies, clients that leave, and the end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
import uvicorn

from qkv.serve.application import application
from qkv.serve.connections import protocol
from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.engine import Engine
from qkv.serve.keys import Keys
from qkv.serve.languages import Direction
from qkv.serve.room import Meter, most_positions
from qkv.serve.server import Server
from qkv.serve.settings import Settings
from qkv.serve.state import State
from tests.serve.served import Served, answered, connected, eventually, listens, posted, serving

LONG = "\n".join(["basa koti rimo nesa lumo badu"] * 200)
"""What takes a while."""


def test_many_ask_at_once_and_all_get_what_they_would_get_alone(served: Served) -> None:
    texts = [" ".join(["basa", "koti", "rimo", "nesa", "lumo"][: 1 + number % 5]) for number in range(40)]
    alone = {text: served.translate(text).json["translatedText"] for text in dict.fromkeys(texts)}
    before = served.metric("batches_total")
    with concurrent.futures.ThreadPoolExecutor(20) as threads:
        found = [*threads.map(lambda text: served.translate(text).json["translatedText"], texts)]
    assert found == [alone[text] for text in texts]
    assert served.metric("batches_total") - before < len(texts)


def test_what_is_too_much_is_refused_at_once_and_health_goes_on(exported: Path) -> None:
    with serving(exported, "--queue-tokens", "2000", "--batch-tokens", "512") as served:
        with concurrent.futures.ThreadPoolExecutor(24) as threads:
            waiting = [threads.submit(served.translate, LONG) for _ in range(24)]
            assert eventually(lambda: served.metric("queued_tokens") > 0)
            assert served.get("/health").status == served.get("/ready").status == 200
            got = [one.result() for one in waiting]
        refused = [one for one in got if one.status == 429]
        assert {one.status for one in got} == {200, 429}
        assert all(int(one.headers["retry-after"]) >= 1 and one.json["error"].startswith("Slowdown") for one in refused)
        assert served.metric("queued_tokens") == served.metric("orders") == 0
        assert served.translate("basa koti").status == 200


def test_who_is_refused_is_not_read_first_and_keeps_the_connection(exported: Path) -> None:
    paths = ("/translate", "/v2/translate", "/stream", "/explain", "/inspect", "/v2/models/en-fr/infer")
    with serving(exported, "--queue-tokens", "1", "--batch-tokens", "64") as served, connected(served) as busy:
        busy.sendall(posted(LONG * 5))
        assert eventually(lambda: served.metric("queued_tokens") > 0)
        for path in paths:
            with connected(served) as refused:
                refused.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n".encode())
                assert refused.recv(13) == b"HTTP/1.1 429 "
                refused.sendall(b"12345GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert b"HTTP/1.1 200 OK" in answered(refused)
        assert served.get("/metrics").body.count(b'status="429"}') == 4


def test_the_speed_that_counts_falls_soon_and_only_where_there_is_enough_to_do() -> None:
    meter = Meter()

    def work(size: int, others: bool) -> float:
        with meter.batch(1, size, size, others=others):
            time.sleep(0.26)
        return meter.pace.tokens_a_second

    assert work(10, others=False) == 0
    quick = work(10_000, others=True)
    assert quick > 0
    assert work(10, others=False) == quick
    assert work(10, others=True) == pytest.approx(quick / 2, rel=0.1)
    assert work(10, others=True) == pytest.approx(quick / 4, rel=0.1)
    assert work(100_000, others=False) > quick / 2


def test_a_batch_is_no_larger_than_what_is_done_in_a_moment() -> None:
    assert most_positions(4096, 4, 0) == most_positions(4096, 4, 5000) == 4096
    assert most_positions(4096, 4, 500) == 2000
    assert most_positions(4096, 4, 1) == 1024
    assert most_positions(512, 4, 1) == 512


def test_work_of_a_client_that_left_is_given_up(exported: Path) -> None:
    with serving(exported, "--batch-tokens", "512") as served:
        for _ in range(20):
            with connected(served) as connection:
                connection.sendall(posted(LONG))
        assert eventually(lambda: served.metric("orders") == 0)
        assert served.metric("disconnects_total") > 0
        assert served.metric("sentences_total") < 20 * 200
        assert served.translate("basa koti").json == {"translatedText": "itok asab"}


def test_work_that_takes_too_long_is_given_up(exported: Path) -> None:
    with serving(exported, "--deadline", "0.05", "--batch-tokens", "256") as served:
        got = served.translate(LONG)
        assert (got.status, "retry-after" in got.headers) == (504, True)
        grown = served.post("/stream", {"q": LONG, "source": "en", "target": "fr"})
        assert b"event: error" in grown.body or grown.status == 504
        assert served.metric("given_up_total") == 2
        assert eventually(lambda: served.metric("orders") == 0)


@pytest.mark.parametrize("wait", [0.0, 0.02, 0.2])
def test_a_signal_loses_nothing_that_was_accepted(exported: Path, wait: float) -> None:
    with serving(exported, "--drain-delay", "0.3") as served:
        connections = [connected(served) for _ in range(8)]
        for connection in connections:
            connection.sendall(posted("basa koti\\n" * 40))
        time.sleep(wait)
        served.process.send_signal(signal.SIGTERM)
        found = [answered(connection) for connection in connections]
        for connection in connections:
            connection.close()
        assert [one.split(b" ", 2)[1] for one in found if b"itok asab" in one] == [b"200"] * 8
        assert served.process.wait(30) == 143


def test_a_request_that_has_begun_to_come_is_answered_by_a_server_that_stops(exported: Path) -> None:
    with serving(exported, "--drain-delay", "0") as served, connected(served) as first, connected(served) as kept:
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.recv(65_536).startswith(b"HTTP/1.1 200 ")
        request = posted("basa koti")
        for connection in (first, kept):
            connection.sendall(request[:20])
        time.sleep(0.1)
        served.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: not listens(served))
        for connection in (first, kept):
            connection.sendall(request[20:])
            assert b"itok asab" in answered(connection)
        assert served.process.wait(30) == 143


def test_connections_that_wait_to_be_accepted_are_served_by_a_server_that_stops() -> None:
    settings = Settings()
    desk = Desk(Engine(settings), [Direction("en", "fr")], settings)
    documents = Documents(desk, settings.buffered_bytes)
    app = application(desk, documents, Keys(), State(None), settings)
    config = uvicorn.Config(app, http=protocol(settings), lifespan="off", log_config=None, timeout_graceful_shutdown=20)

    async def stopped_at_once(clients: list[socket.socket]) -> None:
        server = Server(config, desk, documents, settings)
        config.load()
        server.lifespan = config.lifespan_class(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            await server.startup([listener])
            for client in clients:
                # The loop has no turn meanwhile: it is the kernel that takes these.
                client.connect(listener.getsockname())
                client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await server.shutdown([listener])

    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(4)]
        asyncio.run(stopped_at_once(clients))
        assert [answered(client).startswith(b"HTTP/1.1 200 ") for client in clients] == [True] * 4


def test_a_server_that_stops_is_not_ready_first_and_a_second_signal_does_not_wait(exported: Path) -> None:
    with serving(exported, "--drain-delay", "30") as served:
        served.process.send_signal(signal.SIGINT)
        assert eventually(lambda: served.get("/ready").status == 503)
        late = served.translate("basa koti")
        assert (late.status, late.headers["connection"]) == (200, "close")
        assert served.get("/health").status == 200
        begun = time.monotonic()
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 130
        assert time.monotonic() - begun < 15


def test_a_worker_that_dies_is_begun_anew(exported: Path) -> None:
    with serving(exported) as served:
        first = served.worker
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: served.get("/ready").status == 503)
        assert served.translate("basa").status == 503
        assert eventually(lambda: served.get("/ready").status == 200, 60)
        assert served.translate("basa koti").json == {"translatedText": "itok asab"}
        assert served.worker != first


def test_why_a_worker_cannot_be_begun_anew_is_told_until_it_can(exported: Path, tmp_path: Path) -> None:
    model = shutil.copytree(exported, tmp_path / "model")
    with serving(model) as served:
        model.rename(tmp_path / "away")
        os.kill(served.worker, signal.SIGKILL)
        told = "the process that translates cannot be begun: "
        assert eventually(lambda: told in served.log.read_text(), 60)
        assert str(model) in served.log.read_text().split(told)[1].splitlines()[0]
        (tmp_path / "away").rename(model)
        assert eventually(lambda: served.get("/ready").status == 200, 60)


def test_slow_heads_and_slow_bodies_are_not_waited_for(exported: Path) -> None:
    with serving(exported, "--header-timeout", "0.5", "--body-timeout", "0.5") as served:
        with connected(served) as silent, connected(served) as slow_head, connected(served) as slow_body:
            slow_head.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            slow_body.sendall(posted("basa koti")[:-5])
            begun = time.monotonic()
            assert answered(silent) == answered(slow_head) == b""
            assert b"408" in answered(slow_body).split(b"\r\n")[0]
            assert time.monotonic() - begun < 15
        with connected(served) as kept:
            kept.sendall(posted("basa koti"))
            while b"itok asab" not in kept.recv(65_536):
                pass
            # A second request on the same connection has no more time than the first.
            kept.sendall(b"GET /health HTTP/1.1\r\nHost")
            assert answered(kept) == b""


def test_bodies_that_are_too_large_or_lie_about_it_are_refused_unread(served: Served) -> None:
    before = served.memory()
    head = "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    for length in ("1048577", "99999999999999"):
        with connected(served) as connection:
            connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            assert answered(connection).startswith(b"HTTP/1.1 413 ")
    for length in ("-5", "x", "5, 6"):
        with connected(served) as connection:
            connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            assert answered(connection).startswith(b"HTTP/1.1 400 ")
    with connected(served) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        with pytest.raises(OSError):
            for _ in range(10_000):
                connection.sendall(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
    got = served.post("/translate", b"\x1f\x8b" * 10, headers={"Content-Encoding": "gzip"})
    assert got.status == 415
    assert served.memory() - before < 50


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"q":' * 100_000,
        b"{",
        b"\xff\xfe",
        b'{"q": "\\ud800", "source": "en", "target": "fr"}',
        b'{"q": "\\u0000\\u202e\\ue000", "source": "en", "target": "fr"}',
        b'{"q": 1' + b"0" * 10_000 + b', "source": "en", "target": "fr"}',
        b"&".join(b"a=b" for _ in range(100_000)),
        '{{"q": "{}", "source": "en", "target": "fr"}}'.format("a" + "\u0301" * 1000).encode(),
        '{{"q": "{}", "source": "en", "target": "fr"}}'.format("👩‍👩‍👧‍👦" * 50).encode(),
        '{{"q": "{}", "source": "en", "target": "fr"}}'.format("a" + "\u0301" * 100_000).encode(),
        '{{"q": "{}", "source": "en", "target": "fr"}}'.format("👩‍👩‍👧‍👦" * 10_000).encode(),
    ],
    ids=[
        "lists",
        "objects",
        "broken",
        "bytes",
        "half",
        "signs",
        "number",
        "fields",
        "zalgo",
        "families",
        "much zalgo",
        "many families",
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_nonsense_is_never_a_fault_of_the_server(served: Served, body: bytes, kind: str) -> None:
    got = served.post("/translate", body, headers={"Content-Type": kind})
    assert got.status in (200, 400, 429)
    assert set(got.json) & {"error", "translatedText"}
