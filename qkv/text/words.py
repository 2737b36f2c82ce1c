"""Words and signs of a text, and where a list of terms stands in it as whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from qkv.errors import ConfigError

LINE_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""The characters that end a line, as a pattern's class names them."""

# Scripts that have no space between words: each character is a word of its own, so that a term is found inside a run.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"(?P<run>[^\W{_UNSPACED}]+)|\S")
_JOINERS = "\u200c\u200d"
_STRAIGHT = str.maketrans("’ʼ‘", "'''")


class Span(NamedTuple):
    """A part of a text: its first character and the one behind its last."""

    start: int
    end: int

    def moved(self, by: int) -> Span:
        """The same part of a text that so much comes before."""
        return Span(self.start + by, self.end + by)


class Found(NamedTuple):
    """A term and where it stands in a text."""

    span: Span
    term: str


def words(text: str) -> list[Span]:
    """The words and signs of a text: runs of letters, digits and their accents, and every other sign by itself."""
    spans: list[Span] = []
    in_run = False
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        is_run = match["run"] is not None
        # An accent of its own is part of its letter and does not end the word: \w knows no vowel signs of Hindi.
        goes_on = in_run if is_run else _is_mark(text[start])
        if goes_on and spans and spans[-1].end == start:
            spans[-1] = Span(spans[-1].start, end)
        else:
            spans.append(Span(start, end))
            in_run = is_run
    return spans


def first_word(text: str) -> str:
    """The word or sign that a text begins with; nothing where it has none."""
    return next((text[start:end] for start, end in words(text)), "")


class Terms:
    """Terms to look for, however many: `Terms(["hard disk", "NASA"]).find(text)`.

    A term is found as whole words, in small letters or capitals alike; if it has a capital anywhere but at its very
    beginning, only as it is written. How much white space, which apostrophe, and how accents are coded is all the same.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms: dict[tuple[str, ...], str] = {}
        lengths: dict[str, set[int]] = {}
        for term in terms:
            key = term_key(term)
            if not key:
                raise ConfigError("a term is empty; give a word, or several")
            self._terms.setdefault(key, term)
            lengths.setdefault(key[0].casefold(), set()).add(len(key))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def find(self, text: str) -> list[Found]:
        """The terms in a text from left to right, none inside or across another; of several the longest."""
        spans = words(text)
        keys = _keys(text, spans)
        folded = [key.casefold() for key in keys]
        result = []
        place = 0
        while place < len(spans):
            length, term = self._longest_at(place, keys, folded)
            if term is not None:
                result.append(Found(Span(spans[place].start, spans[place + length - 1].end), term))
            place += length
        return result

    def _longest_at(self, place: int, keys: list[str], folded: list[str]) -> tuple[int, str | None]:
        first, first_folded = keys[place].lstrip(), folded[place].lstrip()
        for length in self._lengths.get(first_folded, ()):
            rest = slice(place + 1, place + length)
            as_written, small = (first, *keys[rest]), (first_folded, *folded[rest])
            term = self._terms.get(as_written) or self._terms.get(small)
            if term is not None:
                # The text may end before the length that was asked for.
                return len(small), term
        return 1, None


def term_key(term: str) -> tuple[str, ...]:
    """What two terms have in common that are found in the same places."""
    keys = _keys(term, words(term))
    keys[:1] = [key.lstrip() for key in keys[:1]]
    is_exact = any(character.isupper() for character in term.lstrip()[1:])
    return tuple(keys if is_exact else (key.casefold() for key in keys))


def _keys(text: str, spans: list[Span]) -> list[str]:
    """What of each word is compared: composed, its apostrophes straight, a space in front if there was any."""
    keys = []
    before = 0
    for start, end in spans:
        word = unicodedata.normalize("NFC", text[start:end]).translate(_STRAIGHT)
        keys.append(word if start == before else f" {word}")
        before = end
    return keys


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or character in _JOINERS
