"""Gettext catalogues: entries without a translation get one; plural forms, contexts, comments and flags stay."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from qkv.files.encodings import decoded
from qkv.files.reading import Asked
from qkv.files.segments import Part, plain_segment, refused, translated
from qkv.text.protect import find

_CHARSET = re.compile(rb"Content-Type:[^\"\\]*charset=([A-Za-z0-9_.:-]+)")
_FIELD = re.compile(
    r"^[ \t]*+(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)[ \t]*+"
    r'("(?:[^"\\\r\n]|\\.)*+"(?:[ \t]*+\r?\n[ \t]*+"(?:[^"\\\r\n]|\\.)*+")*+)[ \t]*+\r?$',
    re.MULTILINE,
)
_STRING = re.compile(r'"((?:[^"\\\r\n]|\\.)*+)"')
_LANGUAGE = re.compile(r'("Language:[ ]*)[^"\\]*')
"""In the head of a catalogue: the language of its translations."""
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]+|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNESCAPED = {character: f"\\{letter}" for letter, character in _ESCAPED.items()} | {"\\": "\\\\", '"': '\\"'}
_BYTE = re.compile(r"[\udc80-\udcff]")
"""A byte that was written as an escape and is no ASCII, until it is read with those beside it."""
_BY_PLACE = re.compile(r"%(?!\(|\d+\$).*|\{\}")


class _Field(NamedTuple):
    name: str
    start: int
    end: int
    raw: str
    text: str | None
    """None where its bytes are no text."""


def translate_po(data: bytes, asked: Asked) -> bytes:
    """A catalogue with every entry translated, but for those whose placeholders a translation would break."""
    source = decoded(data, asked.name, declared=_CHARSET)
    # Of UTF-16 no part is a byte; what programs have of it is UTF-8.
    of_escapes = "utf-8" if source.byte_order_mark else source.encoding
    return source.encoded(translated([*_parts(source.text, asked, of_escapes)], asked.translate), asked.name)


def _parts(text: str, asked: Asked, of_escapes: str) -> Iterator[Part]:
    """The catalogue, every translation that is missing as a segment."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    singular = plural = None
    position = checked = 0
    for match in _FIELD.finditer(text):
        _require_comments(text, checked, match.start(), asked.name)
        checked = match.end()
        field = _Field(match[1], *match.span(2), match[2], _read(match[2], of_escapes))
        if field.name == "msgid":
            singular = plural = field
        elif field.name == "msgid_plural":
            plural = field
            if singular is not None and None in (singular.text, plural.text):
                # A program that finds one of the forms translated shows the other as nothing.
                singular = plural = field._replace(text=None)
        elif field.name == "msgstr" and singular is not None and singular.text == "":
            # The entry of nothing is the head of the catalogue.
            yield text[position : field.start]
            yield _LANGUAGE.sub(rf"\g<1>{asked.target.replace('-', '_')}", field.raw) if asked.target else field.raw
            position = field.end
        elif field.name.startswith("msgstr") and (asked.again or field.text == ""):
            of = singular if field.name in ("msgstr", "msgstr[0]") else plural
            if of is not None and of.text:
                yield text[position : field.start]
                yield plain_segment(of.raw, of.text, partial(_written, of.text, line_end))
                position = field.end
    _require_comments(text, checked, len(text), asked.name)
    yield text[position:]


def _require_comments(text: str, start: int, end: int, name: str) -> None:
    for line in text[start:end].splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            number = text.count("\n", 0, text.index(line, start)) + 1
            raise refused(name, f"line {number:,} cannot be read: {line.strip()[:60]!r}", "check it with `msgfmt -c`")


def _written(source: str, line_end: str, translation: str) -> str:
    """A translation as strings of the file; it begins and ends with line breaks where its source does.

    One that would break a program is left out, and the program shows the source.
    """
    if not _agree(source, translation):
        return '""'
    before = source[: len(source) - len(source.lstrip("\n"))]
    behind = source[len(source.rstrip("\n")) :]
    lines = (before + translation.strip("\n") + behind).splitlines(keepends=True)
    strings = [f'"{"".join(_UNESCAPED.get(character, character) for character in line)}"' for line in lines]
    return strings[0] if len(strings) == 1 else line_end.join(['""', *strings])


def _agree(source: str, translation: str) -> bool:
    """Whether both have the same placeholders, and those that count by their place in the same order."""
    return _placeholders(source) == _placeholders(translation)


def _placeholders(text: str) -> tuple[list[str], Counter[str]]:
    found = [one.text for one in find(text, kinds=["placeholder"]) if one.text != "%%"]
    return [one for one in found if _BY_PLACE.fullmatch(one)], Counter(found)


def _read(raw: str, of_escapes: str) -> str | None:
    """What strings of the file say; escapes are bytes, which only together with those beside them may be a text."""
    text = "".join(_ESCAPE.sub(_unescaped, match[1]) for match in _STRING.finditer(raw))
    if _BYTE.search(text):
        try:
            text = text.encode(of_escapes, "surrogateescape").decode(of_escapes)
        except UnicodeError:
            return None
    return None if "\0" in text else text


def _unescaped(match: re.Match[str]) -> str:
    what = match[1]
    if what[0] in "01234567":
        return _byte(int(what, 8))
    if what[0] == "x" and len(what) > 1:
        return _byte(int(what[1:][-2:], 16))
    return _ESCAPED.get(what, what)


def _byte(number: int) -> str:
    return bytes([number & 0xFF]).decode("ascii", "surrogateescape")
