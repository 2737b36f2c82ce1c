"""Bytes as text and text as bytes, in the encoding that a file says it has."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from qkv.files.segments import refused

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""The longer ones first: one of them begins with another."""
_BEGINNING = 4096
_ASCII = "".join(chr(code) for code in range(ord(" "), ord("~") + 1) if chr(code) != "\\") + r"\x41\u0041.xn--kva"
"""What every encoding that a file can name in its own text reads as ASCII does, escapes and names of hosts too."""


class Decoded(NamedTuple):
    """A file as text, and how it is written again."""

    text: str
    encoding: str
    byte_order_mark: bytes

    def encoded(self, text: str, name: str, *, references: bool = False) -> bytes:
        """Text in the encoding of the file; with references, what that does not have is written as `&#8364;`."""
        try:
            content = text.encode(self.encoding, "xmlcharrefreplace" if references else "strict")
        except UnicodeEncodeError as error:
            missing = text[error.start]
            what = f"its encoding, {self.encoding}, has no {missing!r}, which the translation needs"
            raise refused(name, what, f"convert it with `iconv -f {self.encoding} -t utf-8`") from error
        return self.byte_order_mark + content


def decoded(data: bytes, name: str, *, declared: re.Pattern[bytes] | None = None) -> Decoded:
    """The text of a file: a byte order mark counts first, then what the pattern finds at its beginning, then UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return Decoded(_text(data[len(mark) :], encoding, name), encoding, mark)
    found = declared.search(data[:_BEGINNING]) if declared is not None else None
    encoding = _declared(found[found.lastindex or 0].decode("ascii", "replace"), name) if found else "utf-8"
    return Decoded(_text(data, encoding, name), encoding, b"")


def _declared(encoding: str, name: str) -> str:
    """The encoding that a file says it has, where it can be one: some are for other things than files."""
    if encoding.lower() in ("ucs-2", "charset"):
        return "utf-8"
    try:
        known = codecs.lookup(encoding)
        # Whoever could read the declaration knows that it is not UTF-16.
        if known.name.startswith(("utf-16", "utf-32")):
            return "utf-8"
        is_one = _ASCII.encode().decode(encoding) == _ASCII
    except (LookupError, ValueError):
        is_one = False
    if not is_one:
        told = f"it says that its encoding is {encoding[:60]!r}, which is none that files are in"
        raise refused(name, told, "correct that, or convert it to UTF-8")
    return encoding


def _text(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise refused(
            name,
            f"line {line:,} is not {encoding}",
            "convert it to UTF-8, such as with `iconv -f windows-1252 -t utf-8`",
        ) from error
    if "\0" in text:
        raise refused(name, "it is no text: it has zero bytes", "give a text file")
    return text
