"""The forms that parallel text comes in, each read to lines of plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from qkv.errors import TextError


class Line(NamedTuple):
    """A line of text; where its form names its lines, the other side's must have the same name."""

    text: bytes
    name: str = ""


_LARGEST_TEST = 1 << 26
"""Bytes of a test set: a hundred times what they have."""
_PART = re.compile(
    r"<doc\b(?P<doc>[^<>]*+)>|<seg\b(?P<seg>[^>]*)>(?P<text>.*?)</seg\s*>|<seg\b", re.IGNORECASE | re.DOTALL
)
_ATTRIBUTE = r"\b{}\s*=\s*[\"']?([^\"'\s>]*)"
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);")
"""What the form escapes; other words behind an ampersand are text."""
_ELEMENT = re.compile(rb"<(?P<tag>\w+)\b[^>]*>(?P<text>.*)</(?P=tag)>|</?\w+\b[^>]*>")
_SPOKEN_OF = (b"title", b"description")


def _lines(stream: IO[bytes]) -> Iterator[Line]:
    """Text as it is, a sentence a line."""
    for line in stream:
        yield Line(line.removesuffix(b"\n"))


def _segments(stream: IO[bytes]) -> Iterator[Line]:
    """`<doc docid="a"><seg id="1">text</seg>`: the SGML of the WMT tests, and what IWSLT calls XML."""
    content = stream.read(_LARGEST_TEST + 1)
    if len(content) > _LARGEST_TEST:
        raise TextError(f"a test set of more than {_LARGEST_TEST:,} bytes is none")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"a test set is not UTF-8 at byte {error.start + 1}") from error
    document = ""
    for part in _PART.finditer(text):
        if part["doc"] is not None:
            document = _attribute("docid", part["doc"])
        elif part["text"] is None:
            raise TextError(f"a <seg> of document {document!r} has no end")
        else:
            said = " ".join(_ENTITY.sub(lambda one: html.unescape(one[0]), part["text"]).split())
            yield Line(said.encode(), f"{document}/{_attribute('id', part['seg'])}")


def _attribute(name: str, given: str) -> str:
    found = re.search(_ATTRIBUTE.format(name), given, re.IGNORECASE)
    return found[1] if found else ""


def _talks(stream: IO[bytes]) -> Iterator[Line]:
    """Talks a sentence a line, with lines of markup about them: titles and descriptions are text, the rest is not."""
    for line in stream:
        stripped = line.strip()
        element = _ELEMENT.fullmatch(stripped)
        if element is None:
            yield Line(stripped)
        elif (element["tag"] or b"").lower() in _SPOKEN_OF:
            yield Line(element["text"].strip())


FORMS: dict[str, Callable[[IO[bytes]], Iterator[Line]]] = {"lines": _lines, "segments": _segments, "talks": _talks}
