"""HTTP for all that may connect: heads have an end, in time and size, and whoever is silent makes room for others."""

from __future__ import annotations

import asyncio
import json
import select
from asyncio import TimerHandle
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from qkv.serve.settings import Settings

_HEAD_BYTES = 1 << 16
"""Of the head of a request, and of what may stand behind its body: some clients send texts in the address."""
_PIPELINED = 128
"""Requests that a client may send before the first of them is answered."""
_LOOK_AGAIN = 0.05
"""Seconds between two looks whether a client that says no more still listens."""
_STILL_THERE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What every client of HTTP/1.1 passes over, and the kernel of one that has left refuses."""
_TOO_LARGE = f"Invalid request: its head exceeds the limit of {_HEAD_BYTES} bytes"


class Guarded(HttpToolsProtocol):
    """HTTP as uvicorn has it, within limits for each connection and for all of them."""

    settings: ClassVar[Settings]
    silent: ClassVar[dict[Guarded, None]]
    """Connections on which the next request has not come whole, the one that waits longest first."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_limit: TimerHandle | None = None
        self._write_limit: TimerHandle | None = None
        self._next_look: TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None
        """The request that is being answered; others may have come behind it."""
        self._in_head = False
        self._head_bytes = 0
        self._is_going_on = False
        """Whether what was received last has brought the request further."""
        self._held_bytes = 0
        """Received since it was last brought further: the parser keeps them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.silent[self] = None
        self._await_head()
        if len(self.connections) > self.settings.connections:
            # It may be this one, where all others are at work.
            longest = next(iter(self.silent))
            del self.silent[longest]
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._in_head and (self.cycle is None or self.cycle.response_complete):
            # The next request, or none: empty lines, or the rest of one that was refused unread.
            self._await_head()
        self._is_going_on = False
        super().data_received(data)
        self._held_bytes = 0 if self._is_going_on else self._held_bytes + len(data)
        if self._held_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)

    def on_message_begin(self) -> None:
        # Of the first request, or of the next on a connection that was kept.
        self._in_head = True
        self._head_bytes = 0
        self._await_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._is_going_on = False, True
        self._forget_limit()
        super().on_headers_complete()
        if len(self.pipeline) > _PIPELINED:
            raise ValueError("too many requests without an answer")

    def on_body(self, body: bytes) -> None:
        self._is_going_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_going_on = True
        self._forget_limit()
        self.silent.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self.silent[self] = None

    def pause_writing(self) -> None:
        # Closing would wait until all is read.
        self._write_limit = self.loop.call_later(self.settings.write_timeout, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._write_limit is not None:
            self._write_limit.cancel()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether to go on: a client that sends no more may have left, or have said all and wait for the answer.

        Only what is written tells the two apart. Clients of HTTP/1.0 cannot be told anything before the answer, so they
        are taken to have left: what they asked for would else be done for nobody.
        """
        answering = self._answering
        if answering is None or answering.response_complete or self._in_head or self.cycle.more_body:
            return False
        if answering.scope["http_version"] == "1.0":
            return False
        # The last answer is the end of it.
        self.cycle.keep_alive = False
        if self._next_look is None:
            if not answering.response_started:
                self.transport.write(_STILL_THERE)
            self._look_for_client()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_limit()
        for timer in (self._write_limit, self._next_look):
            if timer is not None:
                timer.cancel()
        self.silent.pop(self, None)
        super().connection_lost(exc)
        if self._answering is not None and self._answering is not self.cycle:
            # It is told, too, where others came behind it.
            self._answering.disconnected = True
            self._answering.message_event.set()

    def shutdown(self) -> None:
        # A request that has begun to come is answered, and its answer closes the connection.
        if not self._in_head and not self._is_told_of(select.POLLIN):
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no request; in the middle of another answer it would be taken for a part of that."""
        if self.pipeline or (self.cycle is not None and self.cycle.response_started != self.cycle.response_complete):
            self.transport.abort()
            return
        large = max(self._held_bytes, self._head_bytes) > _HEAD_BYTES
        status, told = ("431 Request Header Fields Too Large", _TOO_LARGE) if large else ("400 Bad Request", msg)
        body = json.dumps({"error": told}).encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _HEAD_BYTES:
            # The parser stops at once, and uvicorn asks for an answer to what is no request.
            raise ValueError(_TOO_LARGE)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _look_for_client(self) -> None:
        # That a connection is broken is told whatever is asked for.
        if self._is_told_of(0):
            self.transport.abort()
        else:
            self._next_look = self.loop.call_later(_LOOK_AGAIN, self._look_for_client)

    def _is_told_of(self, events: int) -> bool:
        """Whether the kernel tells of one of these events."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), events)
        return bool(poll.poll(0))

    def _await_head(self) -> None:
        if self._head_limit is None:
            self._head_limit = self.loop.call_later(self.settings.header_timeout, self.transport.abort)

    def _forget_limit(self) -> None:
        if self._head_limit is not None:
            self._head_limit.cancel()
            self._head_limit = None


def protocol(settings: Settings) -> type[Guarded]:
    """The protocol of one server: its settings, and the connections that are its own."""
    return type("Guarded", (Guarded,), {"settings": settings, "silent": {}})
