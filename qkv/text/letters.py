"""In which letters a text is read that has capitals where other text has none: warnings, and words that stand alone.

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


@dataclass(frozen=True)
class Letters:
    """In which letters texts are read with a vocabulary, and translations of them written."""

    encode_all: EncodeAll
    language: str | None = None
    """The one that translations are in."""

    def read(self, text: str, *, spared: Collection[str] = ()) -> str:
        """A normalised source as it is read; what is `spared` keeps its letters, and the text its length."""
        if is_in_capitals(text, spared=spared):
            return self._in_usual_letters(text, spared)
        return self._in_likelier_letters(text) if _is_word_with_capital(text) and text not in spared else text

    def given(self, text: str, source: str, *, begins: bool = False) -> str:
        """What somebody gives as a translation of a source, or as its beginning, as the model would write it."""
        if is_in_capitals(source):
            return text if _has_small_letters(text) else self._in_usual_letters(text)
        both = not begins and _is_word_with_capital(source) and _is_word_with_capital(text)
        return self._in_likelier_letters(text) if both else text

    def writing(
        self, source: str, marks: Writing | None, *, begun: str = "", spared: tuple[str, ...] = ()
    ) -> Writing | None:
        """How a translation of a source is written that begins so, and whose marks are written as `marks` says."""
        if is_in_capitals(source, spared=spared) and not _has_small_letters(begun):
            return Capitals(marks, self.language, (*spared, *_kept_in(source)))
        return WithCapital(marks, self.language) if _is_word_with_capital(source) and not begun else marks

    def _in_usual_letters(self, text: str, spared: Collection[str] = ()) -> str:
        kept = places_of([*spared, *_kept_in(text)], text)
        matches = [match for match in _WORD.finditer(text) if kept.isdisjoint(range(*match.span()))]
        ways = [_ways(match[0], begins=_begins_a_sentence(text, match.start())) for match in matches]
        usual = iter(self._likeliest(ways))
        return _WORD.sub(lambda match: next(usual) if kept.isdisjoint(range(*match.span())) else match[0], text)

    def _in_likelier_letters(self, word: str) -> str:
        # Of words that are known both ways, a capital tells: May, Settings.
        small = word.lower()
        one, other = map(len, self.encode_all([word, small]))
        return small if other < one and len(small) == len(word) else word

    def _likeliest(self, ways: Sequence[Sequence[str]]) -> list[str]:
        """Of the ways to write each word that which the vocabulary knows best."""
        several = [*dict.fromkeys(way for some in ways for way in some)]
        rarity = dict(zip(several, map(_rarity, self.encode_all(several)), strict=True))
        return [min(some, key=rarity.__getitem__) for some in ways]


def is_in_capitals(text: str, *, spared: Collection[str] = ()) -> bool:
    """Whether a normalised text has words, and capitals alone but for addresses, code and what is `spared`."""
    phrases = (match[0].replace(_ALSO_AMONG_CAPITALS, "") for match in _NO_ABBREVIATION.finditer(text))
    if not any(map(str.isupper, phrases)):
        return False
    if not _has_small_letters(text):
        return True
    kept = places_of([*spared, *_kept_in(text)], text)
    return not _has_small_letters("".join(one for place, one in enumerate(text) if place not in kept))


def _has_small_letters(text: str) -> bool:
    return any(map(str.islower, text.replace(_ALSO_AMONG_CAPITALS, "")))


def _is_word_with_capital(text: str) -> bool:
    """Whether a text is a single word that begins with a capital, and has no other."""
    return text[:1].isupper() and text[1:].islower() and _WORD.fullmatch(text) is not None


def _kept_in(text: str) -> list[str]:
    """What nobody writes in other letters: addresses, paths, code, placeholders and tags."""
    return [one.text for one in find(text)]


def _ways(word: str, *, begins: bool) -> list[str]:
    """How a word in capitals may be written: small, where it begins no sentence, with a capital, or as it is."""
    small = word.lower()
    ways = [small.capitalize(), word] if begins else [small, small.capitalize(), word]
    return [way for way in dict.fromkeys(ways) if len(way) == len(word)]


def _begins_a_sentence(text: str, place: int) -> bool:
    return _SENTENCE_BEGINS.search(text, max(0, place - _LOOKED_BACK), place) is not None


def _rarity(ids: list[int]) -> tuple[int, int]:
    """Words in few pieces are frequent, and so are pieces that were learned early."""
    return len(ids), max(ids, default=0)


@dataclass(frozen=True)
class _Lettered:
    """How a translation is written whose letters follow its source, and its marks as `marks` says."""

    marks: Writing | None = None
    language: str | None = None

    def decided(self, text: str) -> int:
        """As far as its marks are."""
        return len(text) if self.marks is None else self.marks.decided(text)


@dataclass(frozen=True)
class Capitals(_Lettered):
    """Of a text in capitals: in capitals."""

    spared: tuple[str, ...] = ()
    """What stays as it is, wherever it stands."""

    def write(self, text: str) -> Edited:
        """The text so."""
        spared = places_of(self.spared, text)
        capitals = ((place, _capital(one, self.language)) for place, one in enumerate(text) if place not in spared)
        return _then(edited(text, (Edit(*one) for one in capitals if one[1] != text[one[0]])), self.marks)


@dataclass(frozen=True)
class WithCapital(_Lettered):
    """Of a word with a capital: with one."""

    def write(self, text: str) -> Edited:
        """The text so."""
        first = _capital(text[:1], self.language)
        # A letter that becomes two, as ß, would be more than one capital.
        return _then(edited(text, [Edit(0, first)] if len(first) == 1 else []), self.marks)


def _capital(letter: str, language: str | None) -> str:
    return "İ" if letter == "i" and (language or "").partition("_")[0] in _DOTTED else letter.upper()


def _then(first: Edited, marks: Writing | None) -> Edited:
    return first if marks is None else marks.write(first.text).after(first)
