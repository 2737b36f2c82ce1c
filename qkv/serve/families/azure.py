"""Azure's Translator: version 3.0, and that of 2026-06-06, which has another body for the same addresses."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qkv.serve.families.family import Family, together
from qkv.serve.keys import Account
from qkv.serve.languages import language
from qkv.serve.orders import Answer, Order
from qkv.serve.reading import Asked
from qkv.serve.refusals import Refusal
from qkv.translate import Markup

_KINDS: dict[str, Markup] = {"plain": "none", "html": "html"}
_OLD = "3.0"


class _Wanted(NamedTuple):
    """A text, and how it is wanted."""

    text: str
    source: str | None
    target: str
    markup: Markup


class Azure(Family):
    name = "azure"
    statuses = {"key_wrong": 401, "too_much": 400, "quota": 403}

    def routes(self) -> list[Route]:
        # All its addresses are LibreTranslate's too: the application shares them out.
        return []

    def key(self, asked: Asked) -> str | None:
        return asked.request.headers.get("ocp-apim-subscription-key") or asked.credentials("bearer")

    def error(self, status: int, refusal: Refusal) -> Any:
        # The first three digits are the status.
        return {"error": {"code": status * 1000, "message": refusal.explanation}}

    async def translate_texts(self, asked: Asked, account: Account) -> Response:
        if asked.word("api-version") == _OLD:
            return await self._old(asked, account)
        return await self._new(asked, account)

    async def _old(self, asked: Asked, account: Account) -> Response:
        entries = _entries(asked.document)
        targets = [str(one) for one in asked.values("to")]
        if not targets:
            raise Refusal("bad", "The 'to' parameter is missing.", parameter="to")
        source = asked.word("from") or None
        markup = _markup(asked.word("textType"))
        self._require_few(targets)
        self.desk.require_few_texts(entries)
        wanted = [[_Wanted(_text(entry), source, target, markup) for target in targets] for entry in entries]
        return JSONResponse(await self._each(account, wanted, "to"))

    async def _new(self, asked: Asked, account: Account) -> Response:
        entries = _entries(asked.document.get("inputs") if isinstance(asked.document, dict) else None)
        self.desk.require_few_texts(entries)
        wanted = []
        for entry in entries:
            targets = [_word(one, "language") or "" for one in _entries(entry.get("targets"))]
            self._require_few(targets)
            source, markup = _word(entry, "language") or None, _markup(_word(entry, "textType"))
            wanted.append([_Wanted(_text(entry), source, target, markup) for target in targets])
        return JSONResponse({"value": await self._each(account, wanted, "language")})

    async def _each(self, account: Account, wanted: list[list[_Wanted]], named: str) -> list[dict[str, Any]]:
        """For each text what is told of its translations; texts that are wanted alike are one order."""
        every = [one for some in wanted for one in some]
        self.desk.require_within_limits([one.text for one in every])
        alike: dict[tuple[str | None, str, Markup], list[int]] = {}
        for number, one in enumerate(every):
            alike.setdefault(one[1:], []).append(number)
        orders = [Order([every[number].text for number in numbers], *how) for how, numbers in alike.items()]
        found = await together(self.translate(account, order) for order in orders)
        answers: dict[int, Answer] = {}
        for numbers, some_found in zip(alike.values(), found, strict=True):
            answers.update(zip(numbers, some_found, strict=True))
        left = iter(answers[number] for number in range(len(every)))
        told = []
        for some in wanted:
            own = [*islice(left, len(some))]
            translations = [{named: one.target, "text": answer.text} for one, answer in zip(some, own, strict=True)]
            told.append(_detected(own[0], some[0].source) | {"translations": translations})
        return told

    def _require_few(self, targets: list[Any]) -> None:
        if len(targets) > len(self.desk.languages.all_targets):
            raise Refusal("bad", "There are more targets than languages.", parameter="to")

    async def detect(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        entries = _entries(asked.document)
        self.desk.require_few_texts(entries)
        sources = self.desk.languages.sources
        return JSONResponse(
            [
                {
                    "language": found.language,
                    "score": round(found.confidence, 4),
                    "isTranslationSupported": found.language in sources,
                    "isTransliterationSupported": False,
                }
                for found, *_ in await self.desk.detect(map(_text, entries))
            ]
        )

    async def languages(self, asked: Asked, account: Account) -> Response:  # noqa: ARG002
        told = {}
        for code in self.desk.languages.all:
            found = language(code)
            direction = "rtl" if found.right_to_left else "ltr"
            told[code] = {"name": found.name, "nativeName": found.own_name, "dir": direction, "models": ["qkv"]}
        return JSONResponse({"translation": told})


def _entries(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, list) or not document or not all(isinstance(one, dict) for one in document):
        raise Refusal("bad", "The body of the request is not valid JSON of this version.")
    return document


def _text(entry: dict[str, Any]) -> str:
    text = entry.get("Text", entry.get("text"))
    if not isinstance(text, str):
        raise Refusal("bad", "The body of the request has an entry without a text.", parameter="text")
    return text


def _word(entry: dict[str, Any], name: str) -> str | None:
    word = entry.get(name)
    if word is not None and not isinstance(word, str):
        raise Refusal("bad", f"{name} must be a text.", parameter=name)
    return word


def _markup(kind: str | None) -> Markup:
    kind = (kind or "plain").lower()
    if kind not in _KINDS:
        raise Refusal("bad", f"The textType {kind!r} is neither plain nor html.", parameter="textType")
    return _KINDS[kind]


def _detected(answer: Answer, source: str | None) -> dict[str, Any]:
    if source is not None:
        return {}
    return {"detectedLanguage": {"language": answer.source, "score": round(answer.confidence, 4)}}
