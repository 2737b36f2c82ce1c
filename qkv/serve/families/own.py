"""What is the server's own: translations that grow, readiness, figures and the description of everything."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from qkv.serve.families.family import Family
from qkv.serve.keys import Account
from qkv.serve.limits import LONGEST_PREFIX, MOST_TERM_CHARACTERS, MOST_TERMS, require_few, require_short_terms
from qkv.serve.orders import Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal
from qkv.text.cleaning import normalise

_USES = ("encoder", "decoder", "cross")
"""Where attention can be looked into."""


class Own(Family):
    name = "qkv"

    def routes(self) -> list[Route]:
        routes = [
            Route("/stream", self.endpoint(self.stream, works=True), methods=["POST"]),
            Route("/explain", self.endpoint(self.explain, works=True), methods=["POST"]),
            Route("/inspect", self.endpoint(self.inspect, works=True), methods=["POST"]),
            Route("/ready", self.endpoint(self.ready, public=True), methods=["GET"]),
            Route("/openapi.json", self.endpoint(self.describe, public=True), methods=["GET"]),
        ]
        if self.settings.metrics:
            routes.append(Route("/metrics", self.endpoint(self.metrics, public=True), methods=["GET"]))
        return routes

    def key(self, asked: Asked) -> str | None:
        token = asked.credentials("bearer")
        return asked.word("api_key") if token is None else token

    def error(self, status: int, refusal: Refusal) -> Any:  # noqa: ARG002
        return {"error": refusal.explanation}

    async def ready(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        ready = self.desk.ready
        return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def describe(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return self.described("qkv")

    async def metrics(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return PlainTextResponse(self.front.metrics.text(self.desk), media_type="text/plain; version=0.0.4")

    async def explain(self, asked: Asked, account: Account) -> Response:
        """A translation with its words: how sure they are, where they came from, and how else it could be said."""
        prefix = asked.texts("prefix")
        require_few("".join(prefix), LONGEST_PREFIX, "characters of a prefix", parameter="prefix")
        order = dataclasses.replace(
            _order(asked),
            alternatives=self.alternatives(asked),
            glossary=_glossary(asked),
            prefix=prefix[0] if prefix else None,
        )
        with self.counted(account, order):
            detected, target, told = await self.desk.explain(order)
        confidence = round(detected.confidence, 4)
        return JSONResponse({"source": detected.language, "confidence": confidence, "target": target, **told})

    async def inspect(self, asked: Asked, account: Account) -> Response:
        """What every head looks at while a sentence is translated (docs/inspecting.md), or one head's vectors."""
        order = dataclasses.replace(_order(asked), vectors=_vectors(asked))
        with self.counted(account, order):
            return Response(await self.desk.inspect(order), media_type="application/json")

    async def stream(self, asked: Asked, account: Account) -> Response:
        """Server-sent events: a `part` for each piece of a translation, then `done`; what goes wrong is an `error`."""
        order = _order(asked)
        growing = self.desk.grow(order)
        with self.counted(account, order):
            # What is refused is refused before the answer begins.
            first = await anext(growing, "")
        return StreamingResponse(_events(first, growing), media_type="text/event-stream")


def _order(asked: Asked) -> Order:
    """One text to a language, from one that is said or found out."""
    texts, target = asked.texts("q"), asked.word("target")
    if len(texts) != 1:
        raise Refusal("bad", "Invalid request: q must be one text", parameter="q")
    if not target:
        raise Refusal("bad", "Invalid request: missing target parameter", parameter="target")
    source = asked.word("source")
    return Order(texts, None if source in (None, "", "auto") else source, target)


def _glossary(asked: Asked) -> dict[str, str] | None:
    """Terms and what they become, an object of texts."""
    if not (values := asked.values("glossary")):
        return None
    (terms,) = values if len(values) == 1 else (None,)
    if not isinstance(terms, dict) or not all(
        isinstance(one, str) and one.strip() for one in (*terms, *terms.values())
    ):
        raise Refusal("bad", "Invalid request: glossary must be an object of terms and what they become")
    require_few(terms, MOST_TERMS, "terms", parameter="glossary")
    require_short_terms(terms, MOST_TERM_CHARACTERS, parameter="glossary")
    return {normalise(term): normalise(other) for term, other in terms.items()}


def _vectors(asked: Asked) -> dict[str, Any] | None:
    """The head whose vectors are wanted; None where all that is shown is."""
    if not (values := asked.values("vectors")):
        return None
    head = values[0]
    numbers = [head.get(name) for name in ("layer", "head")] if isinstance(head, dict) else []
    if not all(type(number) is int for number in numbers) or not numbers or head.get("use") not in _USES:
        message = 'Invalid request: vectors must be like {"use": "cross", "layer": 0, "head": 0}'
        raise Refusal("bad", message, parameter="vectors")
    return {name: head[name] for name in ("use", "layer", "head")}


async def _events(first: str, growing: AsyncIterator[str]) -> AsyncIterator[str]:
    whole = first
    yield _event("part", first)
    try:
        async for part in growing:
            whole += part
            yield _event("part", part)
    except Refusal as refusal:
        yield _event("error", refusal.explanation)
        return
    yield _event("done", whole)


def _event(kind: str, text: str) -> str:
    return f"event: {kind}\ndata: {json.dumps({'text': text}, ensure_ascii=False)}\n\n"
