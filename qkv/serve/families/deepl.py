"""DeepL's protocol, version 2: texts, languages, usage and glossaries."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv.serve.documents import Document, Sent
from qkv.serve.families.deepl_options import options, require_usual_formality
from qkv.serve.families.family import Family, Front
from qkv.serve.glossaries import Glossaries, Kept, read_entries, write_entries
from qkv.serve.keys import Account
from qkv.serve.languages import language
from qkv.serve.orders import Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal

_DOCUMENT_WAIT = 5.0
"""Seconds that an answer waits for a file that is almost done."""
_SCHEME = "deepl-auth-key"
_UNLIMITED = 1_000_000_000_000
"""What is told of a key without a limit, as DeepL does."""


class DeepL(Family):
    name = "deepl"
    statuses = {"key_missing": 403, "quota": 456}

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._glossaries = Glossaries(front.state)

    def routes(self) -> list[Route]:
        both = ["GET", "POST"]
        glossary = "/v2/glossaries/{number}"
        return [
            Route("/v2/translate", self.endpoint(self.translate_texts, works=True), methods=both),
            Route("/v2/languages", self.endpoint(self.languages), methods=both),
            Route("/v3/languages", self.endpoint(self.languages_with_roles), methods=["GET"]),
            Route("/v2/usage", self.endpoint(self.usage), methods=both),
            Route("/v2/document", self.endpoint(self.send_document, files=True), methods=["POST"]),
            Route("/v2/document/{number}", self.endpoint(self.document), methods=both),
            Route("/v2/document/{number}/result", self.endpoint(self.document_result), methods=both),
            Route("/v2/glossary-language-pairs", self.endpoint(self.glossary_pairs), methods=["GET"]),
            Route("/v2/glossaries", self.endpoint(self.glossaries), methods=["GET", "POST"]),
            Route(glossary, self.endpoint(self.glossary), methods=["GET", "DELETE"]),
            Route(f"{glossary}/entries", self.endpoint(self.entries), methods=["GET"]),
        ]

    def key(self, asked: Asked) -> str | None:
        key = asked.credentials(_SCHEME)
        return asked.word("auth_key") if key is None else key.strip()

    def error(self, status: int, refusal: Refusal) -> Any:  # noqa: ARG002
        message = refusal.message
        if refusal.reason == "language":
            message = f"Value for '{refusal.parameter}_lang' not supported."
        return {"message": message, "detail": refusal.explanation}

    async def translate_texts(self, asked: Asked, account: Account) -> Response:
        texts = asked.texts("text")
        if not texts:
            raise Refusal("bad", "Bad request: parameter 'text' not specified.", parameter="text")
        if not (target := asked.word("target_lang")):
            raise Refusal("bad", "Bad request: parameter 'target_lang' not specified.", parameter="target_lang")
        wanted = options(asked)
        source = asked.word("source_lang") or None
        number = asked.word("glossary_id")
        order = Order(
            texts,
            source,
            target,
            wanted.markup,
            glossary=self._glossary(account, number, source, target).entries if number else None,
            untouched=wanted.untouched,
            cuts=wanted.cuts,
        )
        answers = await self.translate(account, order)
        model = {"model_type_used": wanted.model} if wanted.model else {}
        return JSONResponse(
            {
                "translations": [
                    {
                        "detected_source_language": answer.source.upper(),
                        "text": answer.text,
                        "billed_characters": len(text),
                        **model,
                    }
                    for text, answer in zip(texts, answers, strict=True)
                ]
            }
        )

    def _glossary(self, account: Account, number: str, source: str | None, target: str) -> Kept:
        if source is None:
            raise Refusal("bad", "Bad request: a glossary needs 'source_lang'.", parameter="source_lang")
        kept = self._glossaries.get(account.name, number)
        if kept.direction != self.desk.languages.direction(source, target):
            raise Refusal("bad", "Bad request: the glossary is for other languages.", parameter="glossary_id")
        return kept

    async def send_document(self, asked: Asked, account: Account) -> Response:
        file = asked.file()
        if file is None:
            raise Refusal("bad", "Bad request: parameter 'file' not specified.", parameter="file")
        if not (target := asked.word("target_lang")):
            raise Refusal("bad", "Bad request: parameter 'target_lang' not specified.", parameter="target_lang")
        require_usual_formality(asked)
        name, data = file
        source, number = asked.word("source_lang") or None, asked.word("glossary_id")
        glossary = self._glossary(account, number, source, target).entries if number else None
        sent = Sent(asked.word("filename") or name, data, source, target, glossary)
        wanted = asked.word("output_format")
        if wanted and not sent.name.lower().endswith(f".{wanted.lower()}"):
            raise Refusal("bad", "Value for 'output_format' not supported.", parameter="output_format")
        document = self.front.documents.begin(sent, partial(self.translate, account), protocol=self.name)
        return JSONResponse({"document_id": document.number, "document_key": document.key})

    async def document(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        document = self._document(asked)
        told: dict[str, Any] = {"document_id": document.number}
        if not document.work.done():
            # The last two are not DeepL's: they are how far it is.
            count = document.count
            far = {"translated_characters": count.characters, "characters": count.all_characters}
            return JSONResponse(told | {"status": "translating", "seconds_remaining": 1, **far})
        if document.failure is not None:
            message = document.failure.message
            return JSONResponse(told | {"status": "error", "error_message": message, "message": message})
        return JSONResponse(told | {"status": "done", "billed_characters": document.count.characters})

    async def document_result(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        document = self._document(asked)
        # Whoever does not ask first whether it is done has it all the same, if it is soon.
        await asyncio.wait([document.work], timeout=_DOCUMENT_WAIT)
        if not document.work.done():
            raise Refusal("away", "The document is still being translated.", retry_after=1)
        if document.failure is not None:
            raise Refusal("not_found", "Document not found")
        response = document.response()
        # It is given once.
        self.front.documents.drop(document)
        return response

    def _document(self, asked: Asked) -> Document:
        document = self.front.documents.get(asked.request.path_params["number"], protocol=self.name)
        if not secrets.compare_digest(document.key.encode(), (asked.word("document_key") or "").encode()):
            raise Refusal("not_found", "Document not found")
        return document

    async def languages(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        languages = self.desk.languages
        kinds = {"source": languages.sources, "target": languages.all_targets}
        kind = asked.word("type") or "source"
        if kind not in kinds:
            raise Refusal("bad", "Value for 'type' not supported.", parameter="type")
        more: dict[str, Any] = {"supports_formality": False} if kind == "target" else {}
        return JSONResponse([{"language": code.upper(), "name": language(code).name, **more} for code in kinds[kind]])

    async def languages_with_roles(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        languages = self.desk.languages
        return JSONResponse(
            [
                {
                    "lang": code,
                    "name": language(code).name,
                    "usable_as_source": code in languages.sources,
                    "usable_as_target": code in languages.all_targets,
                    "features": {},
                }
                for code in languages.all
            ]
        )

    async def usage(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        limit = account.characters_a_month
        return JSONResponse(
            {"character_count": account.used, "character_limit": _UNLIMITED if limit is None else limit}
        )

    async def glossary_pairs(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        pairs = [
            {"source_lang": source, "target_lang": target}
            for source, targets in self.desk.languages.targets.items()
            for target in targets
        ]
        return JSONResponse({"supported_languages": pairs})

    async def glossaries(self, asked: Asked, account: Account) -> Response:
        if asked.request.method == "POST":
            # It may be written to a disk.
            return await asyncio.to_thread(self._add_glossary, asked, account)
        return JSONResponse({"glossaries": [_told(kept) for kept in self._glossaries.of(account.name)]})

    def _add_glossary(self, asked: Asked, account: Account) -> Response:
        said = {name: asked.word(name) for name in ("name", "source_lang", "target_lang")}
        entries, kind = asked.texts("entries"), asked.word("entries_format") or "tsv"
        for name, value in said.items():
            if not value:
                raise Refusal("bad", f"Bad request: parameter '{name}' not specified.", parameter=name)
        direction = self.desk.languages.direction(said["source_lang"] or "", said["target_lang"] or "")
        terms = read_entries(entries[0] if entries else "", kind)
        return JSONResponse(_told(self._glossaries.add(account.name, said["name"] or "", direction, terms)), 201)

    async def glossary(self, asked: Asked, account: Account) -> Response:
        number = asked.request.path_params["number"]
        if asked.request.method == "DELETE":
            await asyncio.to_thread(self._glossaries.remove, account.name, number)
            return Response(status_code=204)
        return JSONResponse(_told(self._glossaries.get(account.name, number)))

    async def entries(self, asked: Asked, account: Account) -> Response:
        kept = self._glossaries.get(account.name, asked.request.path_params["number"])
        return Response(write_entries(kept.entries), media_type="text/tab-separated-values")


def _told(kept: Kept) -> dict[str, Any]:
    return {
        "glossary_id": kept.number,
        "name": kept.name,
        "ready": True,
        "source_lang": kept.direction.source,
        "target_lang": kept.direction.target,
        "creation_time": kept.created.isoformat(),
        "entry_count": len(kept.entries),
    }
