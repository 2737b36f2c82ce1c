"""Words and signs of a text, and where a list of terms stands in it as whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        self._tree = _Tree((term_key(term), term) for term in terms)

    @classmethod
    def keyed(cls, terms: Mapping[tuple[str, ...], str]) -> Terms:
        """The same of terms whose keys are known."""
        made = cls(())
        made._tree = _Tree(terms.items())
        return made

    def find(self, text: str) -> list[Found]:
        """The terms in a text from left to right, none inside or across another; of several the longest."""
        spans = words(text)
        keys = _keys(text, spans)
        folded = [key.casefold() for key in keys]
        as_written = self._tree.longest(keys)
        small = as_written if folded == keys else self._tree.longest(folded)
        result = []
        place = 0
        while place < len(spans):
            # Of two that are as long, the one that is written so.
            length, term = max(as_written[place], small[place], key=lambda found: found[0])
            if term is not None:
                result.append(Found(Span(spans[place].start, spans[place + length - 1].end), term))
            place += max(1, length)
        return result


class _Tree:
    """Terms word by word, the last word first: a text that is read backwards tells at each word which one begins there.

    It is the automaton of Aho and Corasick: a text costs as much as it is long, however many and long the terms are.
    A space between two words is a step of its own, so that it makes no difference before the first one.
    """

    def __init__(self, terms: Iterable[tuple[tuple[str, ...], str]]) -> None:
        self._next: dict[tuple[int, str], int] = {}
        self._came_from: list[tuple[int, str]] = [(0, "")]
        """For each place in the tree the one before it, and the step between."""
        self._depth = [0]
        self._longest: list[tuple[int, str | None]] = [(0, None)]
        """The longest term that is read there, and how many words it has."""
        self._otherwise = [0]
        """Where to go on if there is no step: what was read of another term besides."""
        for key, term in terms:
            if not key:
                raise ConfigError("a term is empty; give a word, or several")
            self._add(key, term)
        self._finish()

    def longest(self, keys: Sequence[str]) -> list[tuple[int, str | None]]:
        """For each word, how many words the longest term has that begins there, and that term."""
        place = 0
        found = []
        for key in reversed(keys):
            place = self._after(place, key.lstrip())
            found.append(self._longest[place])
            if key.startswith(" "):
                place = self._after(place, " ")
        return found[::-1]

    def _add(self, key: tuple[str, ...], term: str) -> None:
        """The first of those that have the same key is found."""
        place = 0
        for step in _backwards(key):
            before, place = place, self._next.get((place, step), len(self._depth))
            if place == len(self._depth):
                self._next[before, step] = place
                self._came_from.append((before, step))
                self._depth.append(self._depth[before] + 1)
                self._longest.append((0, None))
        if not self._longest[place][0]:
            self._longest[place] = (len(key), term)

    def _finish(self) -> None:
        """What there is to know when all are there: of each place, after those that are less deep."""
        self._otherwise = [0] * len(self._depth)
        for place in sorted(range(1, len(self._depth)), key=self._depth.__getitem__):
            before, step = self._came_from[place]
            if before:
                self._otherwise[place] = self._after(self._otherwise[before], step)
            if not self._longest[place][0]:
                self._longest[place] = self._longest[self._otherwise[place]]

    def _after(self, place: int, step: str) -> int:
        while place and (place, step) not in self._next:
            place = self._otherwise[place]
        return self._next.get((place, step), 0)


def _backwards(key: tuple[str, ...]) -> Iterator[str]:
    for number, word in enumerate(reversed(key), start=1):
        yield word.lstrip()
        if word.startswith(" ") and number < len(key):
            yield " "


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
