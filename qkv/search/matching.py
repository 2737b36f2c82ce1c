"""Finding terms in a text while it is being written, as whole words, however its subwords cut it.

The text is read from left to right. At each place the longest term that stands there is found, and what it covers is
not read again: "New York" is no "York". What is still open, because what follows decides, is kept until it is decided.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Scripts that have no space between words: a term is found inside a run of them.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_JOINERS = "_\u200c\u200d"


class Pattern(NamedTuple):
    """A text to look for."""

    text: str
    first: bool = False
    """Whether it is found only where no word stands before it."""


class Reading(NamedTuple):
    """Where a text has been read up to."""

    open: str = ""
    """The end of the text: what of it is found there depends on what follows."""
    in_word: bool = False
    """Whether a letter stands before that."""
    begun: bool = False
    """Whether any letter does."""


class Read(NamedTuple):
    """What was found, by its number, and how far that is certain."""

    found: tuple[int, ...]
    reading: Reading


class Matcher:
    """Looks for patterns: `read` goes on with more text, `end` tells what is found if nothing follows."""

    def __init__(self, patterns: Sequence[Pattern], fold: Callable[[str], str] = str) -> None:
        self._fold = fold
        self._patterns = [pattern._replace(text=fold(pattern.text)) for pattern in patterns]
        self._edges = [(in_word(text[0]), in_word(text[-1])) for text, _ in self._patterns]
        self._by_first: dict[str, list[int]] = {}
        for number in sorted(range(len(patterns)), key=lambda number: -len(self._patterns[number].text)):
            self._by_first.setdefault(self._patterns[number].text[0], []).append(number)
        self._known: dict[tuple[Reading, str | None], Read] = {}

    def read(self, reading: Reading, text: str) -> Read:
        """What more text adds."""
        return self._remembered(reading, text) if self._patterns else Read((), reading)

    def end(self, reading: Reading) -> tuple[int, ...]:
        """What the end of the text adds."""
        return self._remembered(reading, None).found if reading.open else ()

    def _remembered(self, reading: Reading, text: str | None) -> Read:
        # The same few pieces are tried again and again behind text that means nothing here.
        read = self._known.get((reading, text))
        if read is None:
            read = self._known[reading, text] = self._read(reading, text)
        return read

    def _read(self, reading: Reading, more: str | None) -> Read:
        text, before, begun = reading
        text += self._fold(more or "")
        found: list[int] = []
        place = 0
        while place < len(text):
            number, is_open = self._at(text, place, before, begun, is_all=more is None)
            if is_open:
                break
            end = place + (1 if number is None else len(self._patterns[number].text))
            if number is not None:
                found.append(number)
            begun = begun or any(map(in_word, text[place:end]))
            before = in_word(text[end - 1])
            place = end
        return Read(tuple(found), Reading(text[place:], before, begun))

    def _at(self, text: str, place: int, before: bool, begun: bool, *, is_all: bool) -> tuple[int | None, bool]:
        """The longest pattern that stands here, and whether what follows has to be waited for."""
        for number in self._by_first.get(text[place], ()):
            pattern, (opens_word, closes_word) = self._patterns[number], self._edges[number]
            if (opens_word and before) or (pattern.first and begun):
                continue
            end = place + len(pattern.text)
            if end > len(text):
                if not is_all and pattern.text.startswith(text[place:]):
                    return None, True
            elif text.startswith(pattern.text, place):
                if not closes_word:
                    return number, False
                if end == len(text):
                    return number, not is_all
                if not in_word(text[end]):
                    return number, False
        return None, False


def in_word(character: str) -> bool:
    """Whether a word goes on with it: letters, digits and their accents, but for scripts that set no spaces."""
    return (
        character.isalnum() or character in _JOINERS or unicodedata.category(character)[0] == "M"
    ) and not _UNSPACED.match(character)
