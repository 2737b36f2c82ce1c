"""HTML as tokens, as browsers read it: nothing is ever wrong, and the tokens together are the page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from qkv.text.tags import names

# In turn: a comment, what is read as one, a tag. A quotation mark counts only behind an equals sign.
_MARKUP = re.compile(
    r"<!--(?:-?>|(?s:.*?)(?:--!?>|\Z))"
    r"|<(?:[!?]|/(?![A-Za-z]))[^>]*+(?:>|\Z)"
    r"""|<(/?)([A-Za-z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+)>"""
)
_MAYBE = re.compile(r"<(?=[A-Za-z/!?])")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=][^\s/>=]*+)(?:(\s*+=\s*+)("[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?""")

# What is inside these is text to the letter.
_RAW = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
VOID = names("area base br col embed hr img input link meta param source track wbr")


class Attribute(NamedTuple):
    """An attribute, and where in its tag the value stands, with its quotation marks if it has any."""

    name: str
    value: str
    start: int
    end: int


class Token(NamedTuple):
    """A part of a page."""

    kind: Literal["text", "raw", "other", "opening", "closing"]
    raw: str
    name: str = ""
    """Of a tag, in small letters; of raw text, that of the element it is in."""

    @property
    def alone(self) -> bool:
        """Whether nothing closes this tag."""
        return self.name in VOID or self.raw.endswith("/>")

    def attributes(self) -> list[Attribute]:
        """What stands in the tag behind its name; the first of a name counts."""
        found: dict[str, Attribute] = {}
        for match in _ATTRIBUTE.finditer(self.raw, len(self.name) + 1, len(self.raw) - 1):
            name = match[1].lower()
            if name not in found:
                value = match[3] or ""
                shown = value[1:-1] if value[:1] in ("'", '"') else value
                found[name] = Attribute(name, html.unescape(shown), *match.span(3))
        return [*found.values()]


class _Page:
    """A page on its way to tokens."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _lower(self) -> str:
        # Of the same length, which `lower` alone does not promise.
        return self._text.translate({code: code + 32 for code in range(ord("A"), ord("Z") + 1)})

    def tokens(self) -> Iterator[Token]:
        text = self._text
        start = position = 0
        while (maybe := _MAYBE.search(text, position)) is not None:
            match = _MARKUP.match(text, maybe.start())
            if match is None:
                # A tag that never ends: browsers drop it, with all that follows.
                if start < maybe.start():
                    yield Token("text", text[start : maybe.start()])
                yield Token("other", text[maybe.start() :])
                return
            if start < match.start():
                yield Token("text", text[start : match.start()])
            start = position = match.end()
            if match[2] is None:
                yield Token("other", match[0])
                continue
            name = match[2].lower()
            tag = Token("closing" if match[1] else "opening", match[0], name)
            yield tag
            if tag.kind == "opening" and name in _RAW:
                end = self._end_of_raw(name, position)
                if end > start:
                    yield Token("raw", text[start:end], name)
                start = position = end
        if start < len(text):
            yield Token("text", text[start:])

    def _end_of_raw(self, name: str, position: int) -> int:
        closing = re.compile(rf"</{name}(?=[\s/>])").search(self._lower, position)
        return closing.start() if closing else len(self._text)


def tokens(text: str) -> Iterator[Token]:
    """The parts of a page, in order."""
    return _Page(text).tokens()
