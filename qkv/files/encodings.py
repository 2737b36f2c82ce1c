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
    encoding = found[found.lastindex or 0].decode("ascii", "replace") if found else "utf-8"
    # Whoever could read the declaration knows that it is not UTF-16.
    if encoding.lower() in ("utf-16", "utf-32", "ucs-2", "charset"):
        encoding = "utf-8"
    return Decoded(_text(data, encoding, name), encoding, b"")


def _text(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise refused(name, f"it says that its encoding is {encoding!r}, which is none", "correct that") from error
    except (UnicodeDecodeError, ValueError) as error:
        line = data[: getattr(error, "start", 0)].count(b"\n") + 1
        raise refused(
            name,
            f"line {line:,} is not {encoding}",
            "convert it to UTF-8, such as with `iconv -f windows-1252 -t utf-8`",
        ) from error
    if "\0" in text:
        raise refused(name, "it is no text: it has zero bytes", "give a text file")
    return text
