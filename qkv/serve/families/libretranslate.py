"""LibreTranslate's protocol, which most self-hosted clients speak; some of them look for its very sentences."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv.files import kinds
from qkv.serve.documents import Sent
from qkv.serve.families.family import Family
from qkv.serve.keys import Account
from qkv.serve.languages import language
from qkv.serve.orders import Answer, Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal
from qkv.translate import Markup

_FORMATS: dict[str, Markup] = {"text": "none", "html": "html"}


class LibreTranslate(Family):
    name = "libretranslate"
    statuses = {"key_missing": 400, "too_much": 400, "quota": 403}

    def routes(self) -> list[Route]:
        # Addresses that Azure has too are shared out by the application.
        return [
            Route("/frontend/settings", self.endpoint(self.frontend, public=True), methods=["GET"]),
            Route("/translate_file", self.endpoint(self.translate_file, works=True, files=True), methods=["POST"]),
            Route("/download_file/{name}", self.endpoint(self.download, public=True), methods=["GET"], name="download"),
            Route("/suggest", self.endpoint(self.suggest), methods=["POST"]),
            Route("/health", self.endpoint(self.health, public=True), methods=["GET"]),
            Route("/spec", self.endpoint(self.spec, public=True), methods=["GET"]),
        ]

    def key(self, asked: Asked) -> str | None:
        return asked.word("api_key", "apiKey")

    def error(self, status: int, refusal: Refusal) -> Any:  # noqa: ARG002
        # Its clients compare the sentence.
        return {"error": refusal.message}

    async def translate_texts(self, asked: Asked, account: Account) -> Response:
        texts = asked.texts("q")
        if not asked.values("q") and not asked.is_list("q"):
            raise _missing("q")
        source, target = asked.word("source"), asked.word("target")
        if not source:
            raise _missing("source")
        if not target:
            raise _missing("target")
        wanted = asked.word("format") or "text"
        if wanted not in _FORMATS:
            raise Refusal("bad", f"{wanted} format is not supported", parameter="format")
        order = Order(
            texts,
            None if source == "auto" else source,
            target,
            _FORMATS[wanted],
            alternatives=self.alternatives(asked),
        )
        answers = await self.translate(account, order)
        told: dict[str, Any] = {"translatedText": [one.text for one in answers]}
        if source == "auto":
            told["detectedLanguage"] = [_detected(one) for one in answers]
        if order.alternatives:
            told["alternatives"] = [[*one.alternatives] for one in answers]
        several = asked.is_list("q") or len(texts) > 1
        return JSONResponse(told if several else {name: some[0] for name, some in told.items()})

    async def translate_file(self, asked: Asked, account: Account) -> Response:
        file = asked.file()
        source, target = asked.word("source"), asked.word("target")
        if file is None:
            raise Refusal("bad", "Invalid request: missing file parameter", parameter="file")
        if not source:
            raise _missing("source")
        if not target:
            raise _missing("target")
        sent = Sent(*file, None if source == "auto" else source, target)
        document = self.front.documents.begin(sent, partial(self.translate, account), protocol=self.name)
        try:
            await document.work
            if document.failure is not None:
                raise document.failure.refusal()
        except BaseException:
            self.front.documents.drop(document)
            raise
        # Whoever sits behind a proxy is told the address that was asked for.
        where = asked.request.url_for("download", name=quote(f"{document.number}.{document.name}", safe=""))
        return JSONResponse({"translatedFileUrl": str(where)})

    async def download(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        number, _, _ = asked.request.path_params["name"].partition(".")
        document = self.front.documents.get(number, protocol=self.name)
        if not document.work.done() or document.failure is not None:
            raise Refusal("not_found", "Document not found")
        return document.response()

    async def detect(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        texts = asked.texts("q")
        if not texts:
            raise _missing("q")
        (found,) = await self.desk.detect(["\n".join(texts)[: self.settings.request_characters]])
        likely = [one for one in found if one.confidence >= _LEAST] or found[:1]
        return JSONResponse(
            [{"confidence": round(100 * one.confidence, 1), "language": one.language} for one in likely]
        )

    async def languages(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse(
            [
                {"code": code, "name": language(code).name, "targets": targets}
                for code, targets in self.desk.languages.targets.items()
            ]
        )

    async def frontend(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        first, (second, *_) = next(iter(self.desk.languages.targets.items()))
        return JSONResponse(
            {
                "apiKeys": self.front.keys.required,
                "keyRequired": self.front.keys.required,
                "charLimit": self.settings.request_characters,
                "filesTranslation": True,
                "supportedFilesFormat": [extension for kind in kinds() for extension in kind.extensions],
                "frontendTimeout": 500,
                "suggestions": False,
                "language": {
                    "source": {"code": first, "name": language(first).name},
                    "target": {"code": second, "name": language(second).name},
                },
            }
        )

    async def suggest(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        raise Refusal("forbidden", "Suggestions are disabled on this server.")

    async def health(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        return JSONResponse({"status": "ok"})

    async def spec(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        # Clients know a server of this protocol by its title.
        return self.described("LibreTranslate")


_LEAST = 0.05


def _missing(name: str) -> Refusal:
    return Refusal("bad", f"Invalid request: missing {name} parameter", parameter=name)


def _detected(answer: Answer) -> dict[str, Any]:
    return {"confidence": round(100 * answer.confidence, 1), "language": answer.source}
