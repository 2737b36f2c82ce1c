"""Clients that say no more: who waits for an answer has it, and who has left is not worked for."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import pytest

from tests.serve.served import Served, answered, connected, eventually, posted, serving

LONG = "\n".join(["basa koti rimo nesa lumo badu"] * 200)
"""What takes a while."""
STREAM = b"POST /stream?source=en&target=fr&q=basa+koti HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "translations"), [(posted(LONG), 200), (posted("basa koti") * 3, 3), (posted(LONG) * 2, 400), (STREAM, 1)]
)
def test_who_says_no_more_and_waits_is_answered(served: Served, sent: bytes, translations: int) -> None:
    with connected(served) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        got = answered(connection)
    assert got.count(b"asab") == translations
    assert got.count(b"HTTP/1.1 200 OK") == sent.count(b"HTTP/1.1")
    # What has begun to grow before the client said no more is closed without a word.
    assert got.count(b"connection: close") == 1 or (sent == STREAM and got.endswith(b"\r\n0\r\n\r\n"))


def test_clients_pass_over_the_question_whether_they_are_there(served: Served) -> None:
    client = http.client.HTTPConnection(served.host, served.port, timeout=60)
    client.request("POST", f"/translate?source=en&target=fr&q={'basa+koti%0A' * 200}")
    client.sock.shutdown(socket.SHUT_WR)
    assert client.getresponse().status == 200
    client.close()


def test_who_has_not_said_all_is_not_waited_for(served: Served) -> None:
    for sent in (b"", b"GET /hea", posted("basa koti")[:-1]):
        with connected(served) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            assert answered(connection) == b""


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
def test_who_has_left_is_not_worked_for(exported: Path, version: bytes, count: int) -> None:
    with serving(exported, "--batch-tokens", "64") as served:
        with connected(served) as connection:
            connection.sendall(posted(LONG).replace(b"HTTP/1.1", version) * count)
            assert eventually(lambda: served.metric("orders") == 1)
        assert eventually(lambda: served.metric("orders") == 0)
        assert served.metric("sentences_total") < 200
        assert served.metric("disconnects_total") == 1


def test_who_stops_a_server_is_not_kept_waiting_by_who_says_no_more(exported: Path) -> None:
    with serving(exported, "--drain-delay", "0") as served, connected(served) as connection:
        connection.sendall(posted(LONG))
        connection.shutdown(socket.SHUT_WR)
        assert eventually(lambda: served.metric("orders") == 1)
        assert served.stop() == 143
        assert answered(connection).count(b"asab") == 200
