"""Markdown: what readers see is translated; code, addresses, HTML blocks, front matter and all other signs stay.

CommonMark's own tokens, with tables and struck text, tell what is what. They do not tell where they stand, so the
source is walked along with them; a paragraph in which that fails stays as it is.
"""

from __future__ import annotations

import bisect
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from qkv.files.emphasis import readable
from qkv.files.encodings import decoded
from qkv.files.reading import Asked
from qkv.files.segments import Marking, Part, Piece, translated

if TYPE_CHECKING:
    from markdown_it.token import Token

# A line is read in one way only, whatever ends it: where none closes, there would be no end of trying them all.
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*+\r?\n(?:[^\n]*+\n)*?\1[ \t]*+(?:\r?\n|\r?\Z)")
_SOFT = re.compile(r"[ ]?\n[ \t]*")
_HARD = re.compile(r"(?:[ ]{2,}|\\)\n[ \t]*")
_TARGET = re.compile(
    r"""\]\(\s*+(?:<[^<>\n]*+>|(?:[^\s()\\]|\\.|\([^\s()]*+\))*+)(?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+\s*+\)"""
)
_LABEL = re.compile(r"\]\[[^\[\]]++\]")
_SHORT = re.compile(r"\](?:\[\])?")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*+)[^>]*?(/?)>")
_CELL = re.compile(r"(?:[^|\n\\]|\\\|?)++")
_TASK = re.compile(r"\[[ xX]\](?=\s)")
_VOID = {"br", "hr", "img", "input", "wbr"}
_SIGNS = re.compile(r"([\\`*\[\]<~])|(?<![^\W_])(_)|(_)(?![^\W_])|(&)(?=#?\w+;)")
"""What would be read as something else than itself."""
_BEGINS = re.compile(r"(#{1,6}(?=\s)|[-+](?=\s)|>|[-=]+$|\d{1,9}(?=[.)]\s))")
"""What would be a heading, a list or a quotation at the beginning of a line."""


class _Lost(Exception):  # noqa: N818 - it is no error: the paragraph stays as it is
    """The source is not what the tokens tell."""


def translate_markdown(data: bytes, asked: Asked) -> bytes:
    """A translation of the same structure, paragraph by paragraph."""
    source = decoded(data, asked.name)
    return source.encoded(translated([*_parts(source.text)], asked.translate), asked.name)


def _parts(text: str) -> Iterator[Part]:
    # Only who has such a file waits for the parser.
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    position = front.end() if front else 0
    yield text[:position]
    starts = [position, *(match.end() for match in re.compile("\n").finditer(text, position)), len(text)]
    # Escapes and entities come as tokens of their own, which have their source.
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    row: _Row | None = None
    for token in parser.parse(text[position:].replace("\r", " ")):
        if token.type == "tr_open" and token.map:
            row = _Row(text, starts[token.map[0]], starts[token.map[1]])
        elif token.type == "tr_close":
            row = None
        if token.type != "inline" or not token.map or not token.content:
            continue
        try:
            places = _places(text, token.content, max(position, starts[token.map[0]]), starts[token.map[1]], row)
            marking = _marked(text, token.content, places, token.children or [])
        except _Lost:
            continue
        yield text[position : places[0]]
        yield from marking.parts(partial(_composed, in_row=row is not None))
        position = places[-1]
    yield text[position:]


class _Row:
    """A row of a table, cut once: were each cell looked for in all of it, a long one would take for ever."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._cells: dict[str, list[int]] = {}
        for match in _CELL.finditer(text, start, end):
            seen = match[0].strip()
            self._cells.setdefault(seen, []).append(match.start() + match[0].index(seen))

    def find(self, seen: str, start: int) -> int:
        """Where a cell has this, at this place or behind it."""
        places = self._cells.get(seen, [])
        place = bisect.bisect_left(places, start)
        return places[place] if place < len(places) else -1


def _places(text: str, content: str, start: int, end: int, row: _Row | None) -> list[int]:
    """Where each character of an inline text stands in the file, and where it ends."""
    places: list[int] = []
    for line in content.split("\n"):
        seen = line.rstrip(" ")
        found = row.find(seen, start) if row else _in_line(text, seen, start, end)
        if found < 0:
            raise _Lost
        places += range(found, found + len(line) + 1)
        start = found + len(seen)
    places[-1] = start
    return places


def _in_line(text: str, seen: str, start: int, end: int) -> int:
    """Where a line ends with this; behind a heading there may be more."""
    first = text.find(seen, start, end)
    line_end = text.find("\n", max(first, start), end)
    line = text[start : end if line_end < 0 else line_end].rstrip()
    return start + len(line) - len(seen) if line.endswith(seen) else first


def _marked(text: str, content: str, places: Sequence[int], tokens: Sequence[Token]) -> Marking:
    marking = Marking()
    cursor = 0
    if task := _TASK.match(content):
        cursor = task.end()
        marking.single(text[places[0] : places[cursor]])
        tokens = _behind(tokens, cursor)
    left = deque(tokens)
    while left:
        token = left.popleft()
        end = _end(content, cursor, token)
        if token.type == "link_open" and (kept := _kept_link(content, end, left)):
            end = kept
            while left.popleft().type != "link_close":
                pass
            marking.single(text[places[cursor] : places[end]])
        else:
            _mark(marking, token, text[places[cursor] : places[end]])
        cursor = end
    if cursor != len(content):
        raise _Lost
    return marking


def _mark(marking: Marking, token: Token, raw: str) -> None:
    name = token.type.partition("_")[0]
    if token.type in ("text", "text_special"):
        marking.text(raw, token.content)
    elif token.type == "softbreak":
        marking.text(raw, " ")
    elif token.type == "hardbreak":
        marking.single(raw, parting=True)
    elif token.type == "html_inline" and (tag := _TAG.fullmatch(token.content)):
        _mark_tag(marking, tag, raw)
    elif token.nesting == 1:
        marking.opening(name, raw)
    elif token.nesting == -1:
        marking.closing(name, raw)
    else:
        marking.single(raw)


def _kept_link(content: str, cursor: int, tokens: Iterable[Token]) -> int | None:
    """Where a link ends that stays whole: an address is no text, and what is found by its very text must keep it."""
    for token in tokens:
        if token.type == "link_close":
            if token.markup == "autolink":
                return _after(content, cursor, ">")
            if _TARGET.match(content, cursor) or _LABEL.match(content, cursor):
                return None
            found = _SHORT.match(content, cursor)
            return found.end() if found else _fail()
        cursor = _end(content, cursor, token)
    return _fail()


def _behind(tokens: Sequence[Token], count: int) -> list[Token]:
    """The tokens without so many characters of text, which are at their beginning."""
    left: list[Token] = []
    for token in tokens:
        cut = min(count, len(token.content)) if token.type == "text" else 0
        count -= cut
        if cut < len(token.content) or token.type != "text":
            left.append(token.copy(content=token.content[cut:]))
    return left


def _end(content: str, start: int, token: Token) -> int:
    """Where the source of a token ends."""
    if token.type == "text_special":
        return _after(content, start, token.markup)
    if token.type in ("text", "html_inline"):
        return _after(content, start, token.content)
    if token.type == "code_inline":
        closing = re.compile(f"(?<!`){token.markup}(?!`)").search(content, start + len(token.markup))
        return closing.end() if closing else _fail()
    if token.type in ("softbreak", "hardbreak"):
        found = (_SOFT if token.type == "softbreak" else _HARD).match(content, start)
        return found.end() if found else _fail()
    if token.type == "link_open":
        return _after(content, start, "<" if token.markup == "autolink" else "[")
    if token.type == "link_close":
        return _after_target(content, start)
    if token.type == "image":
        inside = _after(content, start, "![")
        for child in token.children or []:
            inside = _end(content, inside, child)
        return _after_target(content, inside)
    return _after(content, start, token.markup)


def _after(content: str, start: int, raw: str) -> int:
    return start + len(raw) if content.startswith(raw, start) else _fail()


def _after_target(content: str, start: int) -> int:
    """Behind the address of a link or an image, or its name."""
    found = _TARGET.match(content, start) or _LABEL.match(content, start) or _SHORT.match(content, start)
    return found.end() if found else _fail()


def _fail() -> int:
    raise _Lost


def _mark_tag(marking: Marking, tag: re.Match[str], raw: str) -> None:
    name = tag[2].lower()
    if tag[3] or name in _VOID:
        marking.single(raw)
    elif tag[1]:
        marking.closing(f"<{name}", raw)
    else:
        marking.opening(f"<{name}", raw)


def _composed(pieces: Sequence[Piece], *, in_row: bool) -> str:
    """Text on one line, whose signs mean themselves."""
    written = "".join(one.content if one.mark else _SIGNS.sub(r"\\\g<0>", one.content) for one in readable(pieces))
    if in_row:
        return written.replace("|", "\\|")
    begins = _BEGINS.match(written)
    if begins is None:
        return written
    sign, rest = begins[1], written[begins.end() :]
    return f"{sign}\\{rest}" if sign.isdigit() else f"\\{sign}{rest}"
