"""What stands inside the text of translators' formats, XLIFF and TMX, as marks."""

from __future__ import annotations

from collections.abc import Sequence

from qkv.files.segments import Marking, Part, written
from qkv.files.xml import Token, element, raw, write

_AROUND = ("g", "pc", "mrk", "hi")
"""Elements that have text in them; what is in any other is code."""
_OPENING = {"bx": ("rid", "id"), "bpt": ("rid", "i", "id"), "sc": ("id",), "sm": ("id",)}
_CLOSING = {"ex": ("rid", "id"), "ept": ("rid", "i", "id"), "ec": ("startRef", "id"), "em": ("startRef",)}
"""Elements that open and close, and the attributes by which they know one another, the first that is there."""


def parts(tokens: Sequence[Token]) -> list[Part]:
    """The content of an element as a segment."""
    marking = Marking()
    waiting = [*tokens][::-1]
    while waiting:
        token = waiting[-1]
        if token.kind == "text":
            marking.text(token.raw, waiting.pop().text)
        elif token.kind == "closing":
            marking.closing(token.local, waiting.pop().raw)
        elif token.kind == "opening" and token.local in _AROUND and not _is_kept(token):
            marking.opening(token.local, waiting.pop().raw)
        elif token.local in _OPENING:
            marking.opening(_known_by(token, _OPENING[token.local]), raw(element(waiting)))
        elif token.local in _CLOSING:
            marking.closing(_known_by(token, _CLOSING[token.local]), raw(element(waiting)))
        else:
            marking.single(raw(element(waiting)))
    return marking.parts(written(write))


def _is_kept(token: Token) -> bool:
    attributes = token.attributes()
    return attributes.get("translate") == "no" or attributes.get("mtype") == "protected"


def _known_by(token: Token, names: Sequence[str]) -> str:
    attributes = token.attributes()
    return next((f"={attributes[name]}" for name in names if name in attributes), "=")
