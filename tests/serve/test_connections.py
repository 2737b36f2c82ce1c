"""Clients that never come to the point, and too many of them: others are served all the same."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest

from tests.serve.served import Served, answered, connected, eventually, posted, serving

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "address": (b"GET /", b"a" * 65_536),
    "one header": (HEAD + b"X-Long: ", b"a" * 65_536),
    "headers": (HEAD, b"X-Many: yes\r\n" * 5000),
    "length of a chunk": (CHUNKED + b"5;", b"a" * 65_536),
    "trailers": (CHUNKED + b"0\r\n", b"X-Many: yes\r\n" * 5000),
    "one trailer": (CHUNKED + b"0\r\nX-Long: ", b"a" * 65_536),
    "requests": (b"", (HEAD + b"\r\n") * 2000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_cut_off(served: Served, what: str) -> None:
    begin, more = ENDLESS[what]
    before, sent = served.memory(), 0
    with connected(served) as connection:
        connection.sendall(begin)
        with contextlib.suppress(OSError):
            while sent < 64 << 20:
                connection.sendall(more)
                sent += len(more)
    assert sent < 64 << 20
    assert served.memory() - before < 50
    assert served.get("/health").status == 200


def test_who_sends_something_now_and_then_that_is_no_request_is_not_waited_for(exported: Path) -> None:
    refused = b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n"
    with serving(exported, "--header-timeout", "0.5") as served:
        for begin, more in ((HEAD + b"\r\n", b"\r\n"), (refused, b"a")):
            with connected(served) as connection:
                connection.sendall(begin)
                assert connection.recv(65_536).startswith(b"HTTP/1.1 ")
                begun = time.monotonic()
                with pytest.raises(OSError):
                    while time.monotonic() - begun < 10:
                        connection.sendall(more)
                        time.sleep(0.05)


def test_who_does_not_read_is_not_waited_for(exported: Path) -> None:
    asked = b"GET /page/inspector/saved.html HTTP/1.1\r\nHost: x\r\n\r\n" * 120
    with serving(exported, "--write-timeout", "0.3") as served, socket.socket() as connection:

        def files() -> int:
            return len([*Path(f"/proc/{served.process.pid}/fd").iterdir()])

        before = files()
        # What the kernel takes for it is little, so that the server has to wait.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((served.host, served.port))
        assert eventually(lambda: files() > before)
        connection.sendall(asked)
        assert eventually(lambda: files() == before)


def test_a_head_that_is_too_large_is_told_so(served: Served) -> None:
    with connected(served) as connection:
        connection.sendall(HEAD + b"X-Long: " + b"a" * 65_536 + b"\r\n\r\n")
        head, _, body = answered(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert b"exceeds the limit of 65536 bytes" in body
    # Whoever sends texts in the address can send many.
    assert served.post(f"/translate?source=en&target=fr&q={'basa+koti+' * 5000}").status in (200, 429)


def test_what_is_no_request_is_told_in_json(served: Served) -> None:
    with connected(served) as connection:
        connection.sendall(b"what is this\r\n\r\n")
        assert answered(connection).endswith(b'{"error": "Invalid HTTP request received."}')


def test_who_is_silent_makes_room_and_who_is_served_does_not(exported: Path) -> None:
    with serving(exported, "--connections", "10", "--batch-tokens", "64") as served, contextlib.ExitStack() as stack:
        busy = stack.enter_context(connected(served))
        busy.sendall(posted("basa koti rimo nesa\\n" * 100))
        assert eventually(lambda: served.metric("orders") == 1)
        silent = [stack.enter_context(connected(served)) for _ in range(30)]
        begun = time.monotonic()
        assert served.get("/health").status == 200
        assert answered(silent[0]) == b""
        assert time.monotonic() - begun < 20
        silent[-1].sendall(HEAD + b"Connection: close\r\n\r\n")
        assert answered(silent[-1]).startswith(b"HTTP/1.1 200 ")
        assert busy.recv(65_536).startswith(b"HTTP/1.1 200 ")
