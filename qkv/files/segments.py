"""A file as parts: what stays as it is, and segments of text to translate, with marks in place of what is inline.

The text of a segment is like HTML: `&`, `<` and `>` of the text are entities, and a mark is a tag with a number that
stands for something of the file: `Click <x1>here</x1>.<br 2/>` So whoever translates HTML can translate every format.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from qkv.errors import TextError

Translate = Callable[[list[str]], list[str]]
"""Translates texts that are like HTML, all at once, and gives every tag of each back once."""

_MARK = re.compile(r"(</?x\d+/?>|<br \d+/>)")
_SPACE = " \t\n\r\f"


class Piece(NamedTuple):
    """A part of a translated segment: text, or the mark with this key and what it stands for."""

    mark: str | None
    content: str


@dataclass(frozen=True, eq=False)
class Segment:
    """Text to translate, and how its translation is written."""

    raw: Sequence[Part]
    """How it is written when nothing has changed."""
    text: str
    marks: Mapping[str, Sequence[Part]]
    compose: Callable[[Sequence[Piece]], str]


Part = str | Segment


def escaped(text: str) -> str:
    """Text as it stands between tags."""
    return html.escape(text, quote=False)


def written(write: Callable[[str], str]) -> Callable[[Sequence[Piece]], str]:
    """Composes a segment of text that is written so, with what its marks stand for in between."""
    return lambda pieces: "".join(one.content if one.mark else write(one.content) for one in pieces)


def plain_segment(raw: str, text: str, compose: Callable[[str], str]) -> Segment:
    """A segment without marks."""
    return Segment([raw], escaped(text), {}, lambda pieces: compose("".join(one.content for one in pieces)))


def translated(parts: Sequence[Part], translate: Translate) -> str:
    """The file with its segments translated; all of them are one call, and what stands twice is asked for once."""
    texts = [*dict.fromkeys(segment.text for segment in _segments(parts) if _has_words(segment.text))]
    translations = translate(texts) if texts else []
    if len(translations) != len(texts):
        raise ValueError(f"{len(texts)} texts were to be translated, and {len(translations)} came back")
    return _rendered(parts, dict(zip(texts, translations, strict=True)))


def _segments(parts: Iterable[Part]) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, Segment):
            yield part
            yield from _segments(part.raw)


def _has_words(text: str) -> bool:
    return any(character.isalpha() for character in html.unescape(_MARK.sub("", text)))


def _rendered(parts: Iterable[Part], translations: Mapping[str, str]) -> str:
    return "".join(part if isinstance(part, str) else _composed(part, translations) for part in parts)


def _composed(segment: Segment, translations: Mapping[str, str]) -> str:
    translation = translations.get(segment.text, segment.text)
    if translation == segment.text:
        return _rendered(segment.raw, translations)
    found = _MARK.split(translation)
    if Counter(found[1::2]) != Counter([*segment.marks]):
        raise ValueError(f"the translation {translation!r} has not the tags of {segment.text!r}")
    pieces = []
    for place, one in enumerate(found):
        if place % 2:
            pieces.append(Piece(one, _rendered(segment.marks[one], translations)))
        elif one:
            pieces.append(Piece(None, html.unescape(one)))
    return segment.compose(pieces)


class _Token(NamedTuple):
    kind: Literal["text", "opening", "closing", "single", "parting"]
    raw: Sequence[Part]
    text: str
    """Of text: what a reader sees."""
    number: int


class Marking:
    """Puts a segment together: `text`, `opening`, `closing` and `single` in the order of the file, then `parts`."""

    def __init__(self) -> None:
        self._tokens: list[_Token] = []
        self._open: list[tuple[str, int]] = []
        self._waiting: Counter[str] = Counter()
        self._partners: set[int] = set()
        self._number = 0

    def text(self, raw: str, text: str) -> None:
        """Text as the file has it, and as a reader sees it."""
        self._tokens.append(_Token("text", [raw], text, 0))

    def opening(self, name: str, *raw: Part) -> str:
        """Something that is closed by `closing` with the same name; gives the key of its mark."""
        self._number += 1
        self._open.append((name, self._number))
        self._waiting[name] += 1
        return self._add("opening", raw, self._number)

    def closing(self, name: str, *raw: Part) -> str:
        """Closes the last that is open with this name; where there is none, it stands alone."""
        if not self._waiting[name]:
            self._number += 1
            return self._add("closing", raw, self._number)
        while True:
            opened, number = self._open.pop()
            self._waiting[opened] -= 1
            if opened == name:
                self._partners.add(number)
                return self._add("closing", raw, number)

    def single(self, *raw: Part, parting: bool = False) -> str:
        """Something without text inside; where it is parting, it is between two words."""
        self._number += 1
        return self._add("parting" if parting else "single", raw, self._number)

    def _add(self, kind: Literal["opening", "closing", "single", "parting"], raw: Sequence[Part], number: int) -> str:
        token = _Token(kind, raw, "", number)
        self._tokens.append(token)
        return _key(token)

    @property
    def has_text(self) -> bool:
        return any(token.text.strip() for token in self._tokens)

    def parts(self, compose: Callable[[Sequence[Piece]], str]) -> list[Part]:
        """The segment; what is at its edges needs no place in it, and stays outside."""
        if not self.has_text:
            return _raw(self._tokens)
        before, tokens, behind = self._peeled()
        return [*before, _segment(_raw(tokens), tokens, compose), *behind]

    def whole(self, raw: Sequence[Part], compose: Callable[[Sequence[Piece]], str]) -> Segment:
        """The segment with its edges, which is written so when nothing has changed."""
        return _segment(raw, self._tokens, compose)

    def _peeled(self) -> tuple[list[Part], list[_Token], list[Part]]:
        tokens = self._tokens
        first, last = 0, len(tokens)
        before: list[Part] = []
        # From the end inwards.
        behind: list[Part] = []
        while True:
            if self._stays_outside(tokens[first], "opening"):
                before += tokens[first].raw
                first += 1
            elif self._stays_outside(tokens[last - 1], "closing"):
                last -= 1
                behind += reversed(tokens[last].raw)
            elif tokens[first].kind == "opening" and tokens[first].number == tokens[last - 1].number:
                before += tokens[first].raw
                behind += reversed(tokens[last - 1].raw)
                first, last = first + 1, last - 1
            else:
                break
        inner = tokens[first:last]
        for place, cut in ((0, str.lstrip), (-1, str.rstrip)):
            token = inner[place]
            if token.kind == "text" and isinstance(raw := token.raw[0], str):
                kept = cut(raw, _SPACE)
                inner[place] = token._replace(raw=[kept], text=cut(token.text, _SPACE))
                if place == 0:
                    before.append(raw[: len(raw) - len(kept)])
                else:
                    behind.append(raw[len(kept) :])
        return before, inner, behind[::-1]

    def _stays_outside(self, token: _Token, edge: str) -> bool:
        if token.kind == "text":
            return not token.text.strip(_SPACE)
        is_alone = token.kind in ("single", "parting")
        return is_alone or (token.kind == edge and token.number not in self._partners)


def _raw(tokens: Sequence[_Token]) -> list[Part]:
    return [part for token in tokens for part in token.raw]


def _segment(raw: Sequence[Part], tokens: Sequence[_Token], compose: Callable[[Sequence[Piece]], str]) -> Segment:
    text = "".join(escaped(token.text) if token.kind == "text" else _key(token) for token in tokens)
    return Segment(raw, text, {_key(token): token.raw for token in tokens if token.kind != "text"}, compose)


def _key(token: _Token) -> str:
    forms = {"opening": "<x{}>", "closing": "</x{}>", "single": "<x{}/>", "parting": "<br {}/>"}
    return forms[token.kind].format(token.number)


def refused(name: str, what: str, remedy: str) -> TextError:
    """What is told of a file that cannot be translated."""
    return TextError(f"{name}: {what}; {remedy}")
