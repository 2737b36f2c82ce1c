"""Text in capitals, as warnings and headlines have it.

A model has seen little of such text, and cuts it into letters. So it reads it in the letters that its vocabulary knows
best, and what it writes is put into capitals again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from qkv.text.editing import Edit, Edited, Writing, edited, places_of
from qkv.text.protect import find

EncodeAll = Callable[[Sequence[str]], list[list[int]]]
"""Texts to the ids of their subwords, of which those learned first are the most frequent."""

# A word beside a digit is part of a name, such as A4.
_WORD = re.compile(r"(?<!\w)[^\W\d_]++(?:['’][^\W\d_]++)*+(?!\w)")
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?…]\s)\W*$")
_LOOKED_BACK = 8
_NO_ABBREVIATION = re.compile(r"[^\W\d_]{4}|(?:[^\W\d_]{2,3} ){2}[^\W\d_]{2}")
"""A longer word, or three short ones in a row: others are often abbreviations."""
_ALSO_AMONG_CAPITALS = "ß"
_DOTTED = {"tr", "az"}
"""Languages in which the capital of i is İ, and I that of ı."""


def has_small_letters(text: str) -> bool:
    return any(map(str.islower, text.replace(_ALSO_AMONG_CAPITALS, "")))


def is_in_capitals(text: str, *, spared: Collection[str] = ()) -> bool:
    """Whether a normalised text has words, and capitals alone but for addresses, code and what is `spared`."""
    phrases = (match[0].replace(_ALSO_AMONG_CAPITALS, "") for match in _NO_ABBREVIATION.finditer(text))
    if not any(map(str.isupper, phrases)):
        return False
    if not has_small_letters(text):
        return True
    kept = places_of([*spared, *kept_in(text)], text)
    return not has_small_letters("".join(one for place, one in enumerate(text) if place not in kept))


def kept_in(text: str) -> list[str]:
    """What nobody writes in other letters: addresses, paths, code, placeholders and tags."""
    return [one.text for one in find(text)]


def in_usual_letters(text: str, encode_all: EncodeAll, *, spared: Collection[str] = ()) -> str:
    """A text in capitals as it would be written otherwise, as far as a vocabulary tells; it is as long as before."""
    kept = places_of([*spared, *kept_in(text)], text)
    matches = [match for match in _WORD.finditer(text) if kept.isdisjoint(range(*match.span()))]
    ways = [_ways(match[0], begins=_begins_a_sentence(text, match.start())) for match in matches]
    several = [*dict.fromkeys(way for some in ways for way in some)]
    rarity = dict(zip(several, map(_rarity, encode_all(several)), strict=True))
    usual = iter([min(some, key=rarity.__getitem__) for some in ways])
    return _WORD.sub(lambda match: next(usual) if kept.isdisjoint(range(*match.span())) else match[0], text)


def _ways(word: str, *, begins: bool) -> list[str]:
    """How a word may be written: small, with a capital, or as it is."""
    small = word.lower()
    ways = [small.capitalize(), word] if begins else [small, small.capitalize(), word]
    return [way for way in ways if len(way) == len(word)]


def _begins_a_sentence(text: str, place: int) -> bool:
    return _SENTENCE_BEGINS.search(text, max(0, place - _LOOKED_BACK), place) is not None


def _rarity(ids: list[int]) -> tuple[int, int]:
    """Words in few pieces are frequent, and so are pieces that were learned early."""
    return len(ids), max(ids, default=0)


@dataclass(frozen=True)
class Capitals:
    """How a translation of a text in capitals is written: in capitals, and its marks as `marks` says."""

    marks: Writing | None = None
    language: str | None = None
    spared: tuple[str, ...] = ()
    """What stays as it is, wherever it stands."""

    def write(self, text: str) -> Edited:
        """The text so."""
        spared = places_of(self.spared, text)
        capitals = ((place, self._capital(one)) for place, one in enumerate(text) if place not in spared)
        whole = edited(text, (Edit(place, capital) for place, capital in capitals if capital != text[place]))
        return whole if self.marks is None else self.marks.write(whole.text).after(whole)

    def _capital(self, letter: str) -> str:
        code = (self.language or "").partition("_")[0]
        return "İ" if letter == "i" and code in _DOTTED else letter.upper()
