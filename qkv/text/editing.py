"""A text in which some characters are written otherwise, and where each of them went."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from qkv.text.words import Span


class Edited(NamedTuple):
    """A text in which some characters were written otherwise, and where each of those it had, and its end, went."""

    text: str
    places: Sequence[int]

    def moved(self, span: Span) -> Span:
        """Where a part of the text before is in this one."""
        return Span(self.places[span.start], self.places[span.end])

    def after(self, first: Edited) -> Edited:
        """Both edits as one, of which this was made in what came of the first."""
        return Edited(self.text, [self.places[place] for place in first.places])


class Edit(NamedTuple):
    """What is written in place of one character."""

    place: int
    written: str


class Writing(Protocol):
    """How a text is written in the end that a model writes in its own way."""

    def write(self, text: str) -> Edited: ...

    def decided(self, text: str) -> int:
        """How much of a text that grows can be written before the rest is there."""


def edited(text: str, edits: Iterable[Edit]) -> Edited:
    """The text with these edits, which are in order."""
    parts: list[str] = []
    places: list[int] = []
    done = length = 0
    for place, written in edits:
        parts += [text[done:place], written]
        places += range(length, length + place - done + 1)
        length += place - done + len(written)
        done = place + 1
    parts.append(text[done:])
    places += range(length, length + len(text) - done + 1)
    return Edited("".join(parts), places)


def places_of(some: Iterable[str], text: str) -> set[int]:
    """Where a text has the characters of one of these, but for those inside of a word."""
    found = (match.span() for one in some for match in re.finditer(re.escape(one), text))
    return {place for span in found if not any(_parts_a_word(text, end) for end in span) for place in range(*span)}


def _parts_a_word(text: str, place: int) -> bool:
    # In scripts without capitals, words have no space between them.
    return 0 < place < len(text) and all(one.lower() != one.upper() for one in text[place - 1 : place + 1])
