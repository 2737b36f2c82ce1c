"""Plain text: every line is a segment, and white space around it stays."""

from __future__ import annotations

import re

from qkv.files.encodings import decoded
from qkv.files.reading import Asked
from qkv.files.segments import Part, plain_segment, translated

_LINE_ENDS = re.compile(r"([\r\n]+)")


def translate_text(data: bytes, asked: Asked) -> bytes:
    """A translation with as many lines."""
    source = decoded(data, asked.name)
    parts = [part for line in _LINE_ENDS.split(source.text) for part in line_parts(line)]
    return source.encoded(translated(parts, asked.translate), asked.name)


def line_parts(line: str) -> list[Part]:
    """A line as a segment and the white space around it."""
    text = line.strip()
    if not text:
        return [line]
    start = line.index(text)
    return [line[:start], plain_segment(text, text, _on_one_line), line[start + len(text) :]]


def _on_one_line(text: str) -> str:
    return _LINE_ENDS.sub(" ", text)
