"""What a request says is read without keeping others from their answers."""

from __future__ import annotations

import asyncio
import tempfile

import pytest
from starlette.requests import Request

from qkv.serve.reading import understood
from tests.serve.served import with_turns

KIND = b"multipart/form-data; boundary=xyz"
FORM = b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n%b\r\n--xyz--\r\n'
REQUEST = Request({"type": "http", "path": "/", "query_string": b"", "headers": [(b"content-type", KIND)]})


def test_no_file_is_written_to_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # There is no such folder, so that whoever wants to write there fails.
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    content = b"a" * (3 << 20)

    asked = asyncio.run(understood(REQUEST, FORM % content))
    assert asked.file() == ("a.txt", content)


def test_others_have_their_turn_while_a_large_file_is_read() -> None:
    content = b"\r\n" * (2 << 20)
    asked, turns = asyncio.run(with_turns(understood(REQUEST, FORM % content)))
    assert asked.file() == ("a.txt", content)
    assert turns >= 60
