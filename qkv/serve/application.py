"""The application: all protocols behind one door, with headers that browsers take seriously."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qkv.serve.desk import Desk
from qkv.serve.documents import Documents
from qkv.serve.families.azure import Azure
from qkv.serve.families.deepl import DeepL
from qkv.serve.families.family import Endpoint, Family, Front
from qkv.serve.families.google import Google
from qkv.serve.families.inference import Inference
from qkv.serve.families.libretranslate import LibreTranslate
from qkv.serve.families.own import Own
from qkv.serve.keys import Keys
from qkv.serve.metrics import Metrics
from qkv.serve.reading import Buffers
from qkv.serve.refusals import Reason, Refusal
from qkv.serve.settings import Settings
from qkv.serve.state import State
from qkv.serve.static import Static

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def application(desk: Desk, documents: Documents, keys: Keys, state: State, settings: Settings) -> Starlette:
    """Everything that a server answers."""
    front = Front(desk, keys, settings, Metrics(), Buffers(settings.buffered_bytes), documents, state)
    libre, azure, deepl, google, inference = (
        LibreTranslate(front), Azure(front), DeepL(front), Google(front), Inference(front)
    )  # fmt: skip
    others: dict[str, Family] = {
        "/v2/models": inference,
        "/v2/health": inference,
        "/v2": deepl,
        "/v3": deepl,
        "/language/translate": google,
    }

    def family(request: Request) -> Family:
        if "api-version" in request.query_params:
            return azure
        path = request.url.path
        return next((one for root, one in others.items() if path == root or path.startswith(f"{root}/")), libre)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reason: Reason = {404: "not_found", 405: "method"}.get(error.status_code, "bad")  # type: ignore[assignment]
        refusal = Refusal(reason, error.detail, allow=(error.headers or {}).get("Allow"))
        return family(request).refused(refusal)

    translate = azure.endpoint(azure.translate_texts, works=True), libre.endpoint(libre.translate_texts, works=True)
    detect = azure.endpoint(azure.detect), libre.endpoint(libre.detect)
    languages = azure.endpoint(azure.languages, public=True), libre.endpoint(libre.languages, public=True)
    shared = [
        Route("/translate", _either(*translate), methods=["POST"]),
        Route("/detect", _either(*detect), methods=["POST"]),
        Route("/languages", _either(*languages), methods=["GET"]),
    ]
    origins = [origin.strip() for origin in settings.cors.split(",") if origin.strip()]
    middleware = [Middleware(_Manners, desk=desk)]
    if origins:
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
        )
    return Starlette(
        routes=[
            *shared,
            *(route for one in (libre, inference, deepl, google, Own(front), Static()) for route in one.routes()),
        ],
        middleware=middleware,
        exception_handlers={HTTPException: refused},
    )


def _either(azure: Endpoint, libre: Endpoint) -> Endpoint:
    """Two protocols have the same addresses; one of them always names its version."""

    async def answer(request: Request) -> Response:
        return await (azure if "api-version" in request.query_params else libre)(request)

    return answer


class _Manners:
    """Headers for every answer; a server that is stopping says so."""

    def __init__(self, app: Asgi, *, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def polite(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name.lower() for name, _ in message["headers"]}
                more = ((name.encode(), value.encode()) for name, value in _HEADERS.items())
                headers = [*message["headers"], *((name, value) for name, value in more if name not in said)]
                if self._desk.stopping:
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, polite)
