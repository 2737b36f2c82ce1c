"""HTML, pages and fragments: what readers see is translated, and every tag, comment and script stays."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from qkv.files.encodings import decoded
from qkv.files.html_tokens import VOID, Attribute, Token, tokens
from qkv.files.reading import MOST_TAGS, Asked
from qkv.files.segments import Marking, Part, Piece, escaped, plain_segment, refused, translated, written
from qkv.text.tags import BLOCKS, LEFT_ALONE, names

_CHARSET = re.compile(
    rb"""<meta\s[^>]*?charset\s*+=\s*+["']?+\s*+([A-Za-z0-9_:.-]++)|<\?xml\s[^>]*?encoding=["']([^"']++)""",
    re.IGNORECASE,
)
_SPACES = re.compile(r"[ \t\n\r\f]+")

_ENDED_BY = {
    "li": ("li",),
    "option": ("option", "optgroup"),
    "p": ("p",),
    "tr": ("tr",),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd")),
    **dict.fromkeys(("td", "th"), ("td", "th", "tr")),
}
"""Elements that need no tag to end: another of their kind does it, or the end of what is around them."""
_SEEN = names("alt title placeholder label aria-label aria-description aria-placeholder")
"""Attributes that readers see."""
_BUTTONS = names("submit button reset")
_TOLD = names(
    "description keywords og:title og:description og:image:alt twitter:title twitter:description twitter:image:alt"
)
"""Of a page's description of itself, what is told to people."""

_COMPOSE: Callable[[Sequence[Piece]], str] = written(escaped)


def translate_html(data: bytes, asked: Asked) -> bytes:
    """A translation with the same tags."""
    source = decoded(data, asked.name, declared=_CHARSET)
    if source.text.count("<") > 2 * MOST_TAGS:
        raise refused(asked.name, f"it has more than {MOST_TAGS:,} elements", "split it")
    text = translated([*_Reader(asked.target).parts(source.text)], asked.translate)
    return source.encoded(text, asked.name, references=True)


class _Reader:
    def __init__(self, target: str | None) -> None:
        self._target = target

    def parts(self, text: str) -> Iterator[Part]:
        marking = Marking()
        waiting: list[Token] = [*tokens(text)][::-1]
        while waiting:
            token = waiting.pop()
            if token.kind == "text":
                marking.text(token.raw, html.unescape(_SPACES.sub(" ", token.raw)))
            elif token.kind == "opening" and (token.name in LEFT_ALONE or _is_not_to_be_translated(token)):
                whole = token.raw + "".join(_taken_whole(token, waiting))
                if token.name in BLOCKS:
                    yield from marking.parts(_COMPOSE)
                    marking = Marking()
                    yield whole
                else:
                    marking.single(whole)
            elif token.name in BLOCKS:
                yield from marking.parts(_COMPOSE)
                marking = Marking()
                yield from self._block(token)
            else:
                self._inline(token, marking)
        yield from marking.parts(_COMPOSE)

    def _block(self, token: Token) -> Iterator[Part]:
        if token.kind == "opening":
            yield from self._tag(token)
        elif token.kind == "raw" and token.name == "title":
            marking = Marking()
            marking.text(token.raw, html.unescape(_SPACES.sub(" ", token.raw)))
            yield from marking.parts(_COMPOSE)
        else:
            yield token.raw

    def _inline(self, token: Token, marking: Marking) -> None:
        if token.kind == "opening" and not token.alone:
            marking.opening(token.name, *self._tag(token))
        elif token.kind == "closing" and token.name not in VOID:
            marking.closing(token.name, token.raw)
        else:
            parts = self._tag(token) if token.kind == "opening" else [token.raw]
            marking.single(*parts, parting=token.name == "br")

    def _tag(self, token: Token) -> list[Part]:
        """A tag, with those of its attributes as segments that readers see."""
        attributes = {one.name: one for one in token.attributes()}
        changes: dict[Attribute, Part] = {}
        for name in _seen(token.name, {name: one.value.lower() for name, one in attributes.items()}):
            one = attributes.get(name)
            if one is not None and one.value.strip():
                raw = token.raw[one.start : one.end]
                changes[one] = plain_segment(raw, " ".join(one.value.split()), _Quoted(raw))
        raw = token.raw
        if token.name == "html" and self._target:
            for name in ("lang", "xml:lang"):
                if name in attributes and attributes[name].start >= 0:
                    changes[attributes[name]] = f'"{self._target}"'
            if "lang" not in attributes:
                changes[Attribute("", "", len("<html"), len("<html"))] = f' lang="{self._target}"'
        parts: list[Part] = []
        position = 0
        for place, change in sorted(changes.items(), key=lambda pair: pair[0].start):
            parts += [raw[position : place.start], change]
            position = place.end
        return [*parts, raw[position:]]


class _Quoted:
    """Writes the value of an attribute in the quotation marks it had."""

    def __init__(self, raw: str) -> None:
        self._mark = raw[0] if raw[0] in "'\"" else '"'

    def __call__(self, text: str) -> str:
        value = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return self._mark + value.replace(self._mark, {'"': "&quot;", "'": "&#39;"}[self._mark]) + self._mark


def _seen(name: str, values: dict[str, str]) -> Iterator[str]:
    yield from (one for one in values if one in _SEEN)
    if name == "input" and values.get("type") in _BUTTONS:
        yield "value"
    if name == "meta" and (values.get("name") in _TOLD or values.get("property") in _TOLD):
        yield "content"


def _is_not_to_be_translated(tag: Token) -> bool:
    if "translate" not in tag.raw.lower():
        return False
    values = {one.name: one.value.lower() for one in tag.attributes()}
    return not tag.alone and (values.get("translate") == "no" or "notranslate" in values.get("class", "").split())


def _taken_whole(tag: Token, waiting: list[Token]) -> Iterator[str]:
    """Takes what is inside an element, and its end."""
    if tag.alone:
        return
    inside: Counter[str] = Counter()
    depth = 0
    ended_by = _ENDED_BY.get(tag.name, ())
    while waiting:
        token = waiting[-1]
        is_tag = token.kind in ("opening", "closing") and not token.alone
        if is_tag and token.kind == "opening":
            if token.name in ended_by and not depth:
                return
            inside[token.name] += 1
            depth += 1
        elif is_tag and inside[token.name]:
            inside[token.name] -= 1
            depth -= 1
        elif is_tag and token.name == tag.name:
            yield waiting.pop().raw
            return
        elif is_tag and ended_by:
            return
        yield waiting.pop().raw
