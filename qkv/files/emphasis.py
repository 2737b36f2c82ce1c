"""Emphasis in Markdown: signs that would not be read as such where they stand move outwards, to the end of their word.

Which signs begin or end emphasis depends on what is beside them (CommonMark 0.31, section 6.2).
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence

from qkv.files.segments import Piece
from qkv.text.words import words

_SIGN = re.compile(r"\*{1,2}|_{1,2}|~~")
_OUTSIDE = " "
_MOST_TOUCHING = 16
"""Signs that touch one another; nobody writes as many, and who looks past all of thousands takes minutes."""
_OTHER_SIGNS = re.compile(r"[*_~`\[\]<>&!\\|]")


def readable(pieces: Sequence[Piece]) -> list[Piece]:
    """The same text with emphasis that is read as such; a pair without text, or without a place, is left out."""
    line = _Line(pieces)
    line.drop_empty()
    line.move_space_outside()
    line.join_touching()
    line.move_outwards()
    made = line.pieces()
    return made if _is_read(made) else [one for one in made if not _is_emphasis(one)]


class _Line:
    """Marks and the texts before, between and behind them; a mark that was left out has no content."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._marks: list[Piece] = []
        self._texts = [""]
        for one in pieces:
            if one.mark:
                self._marks.append(one)
                self._texts.append("")
            else:
                self._texts[-1] += one.content
        self._partners = dict(_pairs(self._marks))

    def pieces(self) -> list[Piece]:
        texts = (Piece(None, text) for text in self._texts)
        both = itertools.chain.from_iterable(itertools.zip_longest(texts, self._marks))
        return [one for one in both if one is not None and one.content]

    def drop_empty(self) -> None:
        """With nothing between, four signs in a row would be read as themselves."""
        # An address without a text is nothing to see, but nobody wants to lose it.
        is_shown = (
            bool(text.strip()) or not _SIGN.fullmatch(mark.content)
            for text, mark in zip(self._texts, self._marks, strict=False)
        )
        shown = [0, *itertools.accumulate(is_shown)]
        for opening, closing in self._partners.items():
            if shown[opening + 1] == shown[closing] and not self._texts[closing].strip():
                self._drop(opening, closing)

    def move_space_outside(self) -> None:
        for closing in sorted(self._partners.values()):
            text = self._texts[closing]
            kept = len(text.rstrip())
            self._texts[closing] = text[:kept]
            self._texts[closing + 1] = text[kept:] + self._texts[closing + 1]
        for opening in sorted(self._partners, reverse=True):
            text = self._texts[opening + 1]
            space = len(text) - len(text.lstrip())
            self._texts[opening] += text[:space]
            self._texts[opening + 1] = text[space:]

    def join_touching(self) -> None:
        """The signs between two that touch would be read as one, and so may they."""
        for closing in sorted(self._partners.values()):
            behind = closing + 1
            touches = behind in self._partners and not self._texts[behind]
            if touches and self._marks[closing].content == self._marks[behind].content:
                self._drop(closing, behind)
        # The first of one and the last of the other are partners now.
        self._partners = dict(_pairs(self._marks))

    def move_outwards(self) -> None:
        """From outside inwards: a word that comes into a pair is beside those that are inside it."""
        for opening, closing in sorted(self._partners.items()):
            while self._marks[opening].content and not self._can(opening, opens=True):
                if not self._move_back(opening):
                    self._drop(opening, closing)
        for opening, closing in sorted(self._partners.items(), key=lambda pair: -pair[1]):
            while self._marks[closing].content and not self._can(closing, opens=False):
                if not self._move_on(closing):
                    self._drop(opening, closing)

    def _drop(self, *numbers: int) -> None:
        for number in numbers:
            self._marks[number] = self._marks[number]._replace(content="")

    def _move_back(self, number: int) -> bool:
        text = self._texts[number]
        if not text or text[-1].isspace():
            return False
        start = words(text)[-1].start
        self._texts[number] = text[:start]
        self._texts[number + 1] = text[start:] + self._texts[number + 1]
        return True

    def _move_on(self, number: int) -> bool:
        text = self._texts[number + 1]
        if not text or text[0].isspace():
            return False
        end = words(text)[0].end
        self._texts[number] += text[:end]
        self._texts[number + 1] = text[end:]
        return True

    def _can(self, number: int, *, opens: bool) -> bool:
        """Whether a sign can begin emphasis, or end it, where it is."""
        before, behind = self._beside(number, -1), self._beside(number, 1)
        # For what ends, all is the other way round.
        outer, inner = (before, behind) if opens else (behind, before)
        flanks = _flanks(outer, inner)
        if self._marks[number].content[0] != "_":
            return flanks
        return flanks and (not _flanks(inner, outer) or _is_sign(outer))

    def _beside(self, number: int, step: int) -> str:
        """The next character, past signs of the same kind: they are one with it."""
        sign = self._marks[number].content[0]
        edge = -1 if step < 0 else 0
        for _ in range(_MOST_TOUCHING):
            if not 0 <= number < len(self._marks):
                break
            if text := self._texts[number + (step > 0)]:
                return text[edge]
            number += step
            if 0 <= number < len(self._marks):
                content = self._marks[number].content
                if content and not (_SIGN.fullmatch(content) and content[0] == sign):
                    return content[edge]
        return _OUTSIDE


def _is_read(pieces: Sequence[Piece]) -> bool:
    """Whether no sign of emphasis is read as text: several in a row may pair up otherwise than they were meant to."""
    if not any(map(_is_emphasis, pieces)):
        return True
    # Only who has such a file waits for the parser.
    from markdown_it import MarkdownIt

    # All other signs are as good as one another.
    text = "".join(one.content if _is_emphasis(one) else _OTHER_SIGNS.sub(".", one.content) for one in pieces)
    (line,) = MarkdownIt("commonmark").enable("strikethrough").parseInline(text)
    return not any(set("*_~") & set(token.content) for token in line.children or [])


def _is_emphasis(piece: Piece) -> bool:
    return piece.mark is not None and _SIGN.fullmatch(piece.content) is not None


def _pairs(marks: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """The numbers of signs of emphasis that begin and end a pair."""
    opened: list[int] = []
    for number, one in enumerate(marks):
        if one.mark is None or not _is_emphasis(one):
            continue
        if not one.mark.startswith("</"):
            opened.append(number)
        elif opened:
            yield opened.pop(), number


def _flanks(outer: str, inner: str) -> bool:
    return not inner.isspace() and (not _is_sign(inner) or outer.isspace() or _is_sign(outer))


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
