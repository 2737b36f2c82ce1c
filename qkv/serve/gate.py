"""The gate: requests for work are turned away before anything of them is read, when there is no room for them.

Ten clients may be refused for each that is served: what a refusal costs is taken from those who are served.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import Request

from qkv.serve.desk import Desk
from qkv.serve.families.family import Family
from qkv.serve.refusals import Refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

_WORK = {"/translate", "/translate_file", "/stream", "/explain", "/inspect", "/v2/translate", "/v2/document",
         "/language/translate/v2"}  # fmt: skip
"""Addresses behind which work is done; those of the Open Inference Protocol end alike."""
_INFER = "/infer"


class Gate:
    """An application before another."""

    def __init__(self, app: Asgi, *, desk: Desk, family: Callable[[Request], Family]) -> None:
        self._app = app
        self._desk = desk
        self._family = family

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"] in _WORK or scope["path"].endswith(_INFER)):
            begun = time.monotonic()
            try:
                self._desk.require_room()
            except Refusal as refusal:
                # What the client still sends of its request is passed over, and the connection kept.
                answer = self._family(Request(scope)).turned_away(refusal, begun)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
