"""What is the server's own: translations that grow, readiness, figures and the description of everything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from qkv.serve.families.family import Family
from qkv.serve.keys import Account
from qkv.serve.openapi import document
from qkv.serve.orders import Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal


class Own(Family):
    name = "qkv"

    def routes(self) -> list[Route]:
        routes = [
            Route("/stream", self.endpoint(self.stream, works=True), methods=["POST"]),
            Route("/ready", self.endpoint(self.ready, public=True), methods=["GET"]),
            Route("/openapi.json", self.endpoint(self.describe, public=True), methods=["GET"]),
        ]
        if self.settings.metrics:
            routes.append(Route("/metrics", self.endpoint(self.metrics, public=True), methods=["GET"]))
        return routes

    def key(self, asked: Asked) -> str | None:
        scheme, _, token = asked.request.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else asked.word("api_key")

    def error(self, status: int, refusal: Refusal) -> Any:  # noqa: ARG002
        return {"error": refusal.message}

    async def ready(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        ready = self.desk.ready
        return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def describe(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse(document(self.settings, self.desk.languages))

    async def metrics(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return PlainTextResponse(self.front.metrics.text(self.desk), media_type="text/plain; version=0.0.4")

    async def stream(self, asked: Asked, account: Account) -> Response:
        """Server-sent events: a `part` for each piece of a translation, then `done`; what goes wrong is an `error`."""
        texts, target = asked.texts("q"), asked.word("target")
        if len(texts) != 1:
            raise Refusal("bad", "Invalid request: q must be one text", parameter="q")
        if not target:
            raise Refusal("bad", "Invalid request: missing target parameter", parameter="target")
        source = asked.word("source")
        growing = self.desk.grow(Order(texts, None if source in (None, "", "auto") else source, target))
        account.use(len(texts[0]))
        # What is refused is refused before the answer begins.
        first = await anext(growing, "")
        return StreamingResponse(_events(first, growing), media_type="text/event-stream")


async def _events(first: str, growing: AsyncIterator[str]) -> AsyncIterator[str]:
    whole = first
    yield _event("part", first)
    try:
        async for part in growing:
            whole += part
            yield _event("part", part)
    except Refusal as refusal:
        yield _event("error", refusal.message)
        return
    yield _event("done", whole)


def _event(kind: str, text: str) -> str:
    return f"event: {kind}\ndata: {json.dumps({'text': text}, ensure_ascii=False)}\n\n"
