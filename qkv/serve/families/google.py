"""Google's Cloud Translation v2 (Basic)."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv.serve.families.family import Family
from qkv.serve.keys import Account
from qkv.serve.languages import language
from qkv.serve.orders import Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal
from qkv.translate import Markup

_ROOT = "/language/translate/v2"
_FORMATS: dict[str, Markup] = {"html": "html", "text": "none"}
_NAMES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
          413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
          504: "DEADLINE_EXCEEDED"}  # fmt: skip


class Google(Family):
    name = "google"
    statuses = {"too_much": 400, "key_missing": 403, "key_wrong": 400}

    def routes(self) -> list[Route]:
        both = ["GET", "POST"]
        return [
            Route(_ROOT, self.endpoint(self.translate_texts, works=True), methods=both),
            Route(f"{_ROOT}/detect", self.endpoint(self.detect), methods=both),
            Route(f"{_ROOT}/languages", self.endpoint(self.languages), methods=both),
        ]

    def key(self, asked: Asked) -> str | None:
        return asked.word("key") or asked.request.headers.get("x-goog-api-key") or asked.credentials("bearer")

    def error(self, status: int, refusal: Refusal) -> Any:
        reason = {"message": refusal.explanation, "domain": "global", "reason": refusal.reason}
        told = {"code": status, "message": refusal.explanation, "errors": [reason]}
        return {"error": told | ({"status": _NAMES[status]} if status in _NAMES else {})}

    async def translate_texts(self, asked: Asked, account: Account) -> Response:
        texts = asked.texts("q")
        if not texts:
            raise _missing("q")
        if not (target := asked.word("target")):
            raise _missing("target")
        wanted = asked.word("format") or "html"
        if wanted not in _FORMATS:
            raise Refusal("bad", f"Invalid Value: format {wanted!r} is neither html nor text", parameter="format")
        source = asked.word("source") or None
        answers = await self.translate(account, Order(texts, source, target, _FORMATS[wanted]))
        found = [
            {"translatedText": one.text} | ({"detectedSourceLanguage": one.source} if source is None else {})
            for one in answers
        ]
        return JSONResponse({"data": {"translations": found}})

    async def detect(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        texts = asked.texts("q")
        if not texts:
            raise _missing("q")
        self.desk.require_few_texts(texts)
        found = [likeliest for likeliest, *_ in await self.desk.detect(texts)]
        return JSONResponse(
            {
                "data": {
                    "detections": [
                        [{"language": one.language, "isReliable": False, "confidence": one.confidence}] for one in found
                    ]
                }
            }
        )

    async def languages(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        named = asked.word("target") is not None
        return JSONResponse(
            {
                "data": {
                    "languages": [
                        {"language": code} | ({"name": language(code).name} if named else {})
                        for code in self.desk.languages.all
                    ]
                }
            }
        )


def _missing(name: str) -> Refusal:
    return Refusal("bad", f"Required Text: missing {name}", parameter=name)
