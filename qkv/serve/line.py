"""The line between the two processes, as the one that computes holds it."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

from qkv.serve.orders import HEAD, length, packed


class Line:
    """The socket to the other process: whole messages, either way."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Messages until the other end closes."""
        while head := self._bytes(HEAD):
            yield json.loads(self._bytes(length(head)))

    def has_more(self) -> bool:
        """Whether another message has come already."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def send(self, message: dict[str, Any]) -> None:
        # Nobody listens any more: this process will end as well.
        with self._writing, contextlib.suppress(OSError):
            self._connection.sendall(packed(message))

    def _bytes(self, count: int) -> bytes:
        parts = []
        while count:
            some = self._connection.recv(min(count, 1 << 20))
            if not some:
                return b""
            parts.append(some)
            count -= len(some)
        return b"".join(parts)
