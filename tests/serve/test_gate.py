"""Who asks for work is turned away unread where there is no room for it, whatever the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from qkv.serve.application import application
from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.engine import Engine
from qkv.serve.keys import Keys
from qkv.serve.languages import Direction
from qkv.serve.refusals import Refusal
from qkv.serve.settings import Settings
from qkv.serve.state import State

NO_WORK = {
    "/", "/page/{name:path}", "/languages", "/detect", "/frontend/settings", "/download_file/{name}", "/suggest",
    "/health", "/spec", "/ready", "/metrics", "/openapi.json",
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/languages", "/v3/languages", "/v2/usage",
    "/v2/document/{number}", "/v2/document/{number}/result", "/v2/glossary-language-pairs", "/v2/glossaries",
    "/v2/glossaries/{number}", "/v2/glossaries/{number}/entries",
    "/language/translate/v2/detect", "/language/translate/v2/languages",
    "/v2/models/{model}", "/v2/models/{model}/ready", "/v2/models/{model}/versions/{version}",
    "/v2/models/{model}/versions/{version}/ready",
}  # fmt: skip
"""Addresses that no model is asked at; whoever adds another says here that it is one of these, or that it works."""


class Full(Desk):
    """A desk that has no room."""

    def require_room(self) -> None:
        raise Refusal("busy", "Slowdown", retry_after=1)


@pytest.fixture(scope="module")
def full() -> Starlette:
    settings = Settings()
    desk = Full(Engine(settings), [Direction("en", "fr")], settings)
    return application(desk, Documents(desk, settings.buffered_bytes), Keys(), State(None), settings)


def unread(app: Starlette, path: str, query: bytes = b"") -> int | None:
    """The status of the answer to whoever has sent no more than a head; None where more is waited for."""
    scope: dict[str, Any] = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path, "root_path": "",
        "raw_path": path.encode(), "query_string": query, "headers": [], "client": None, "server": ("x", 1),
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> Any:
        raise asyncio.CancelledError

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def ask() -> None:
        await app(scope, receive, send)

    try:
        asyncio.run(ask())
    except asyncio.CancelledError:
        return None
    return statuses[0]


def test_every_address_is_known_to_work_or_not(full: Starlette) -> None:
    paths = {route.path for route in full.routes if isinstance(route, Route)}
    assert paths >= NO_WORK
    working = paths - NO_WORK
    assert {path: unread(full, path.replace("{model}", "en-fr")) for path in working} == dict.fromkeys(working, 429)
    assert unread(full, "/translate", b"api-version=3.0&to=fr") == 429
    assert len(working) >= 10


def test_who_asks_for_no_work_is_heard(full: Starlette) -> None:
    assert unread(full, "/detect") is None
    assert unread(full, "/v2/glossaries") is None
