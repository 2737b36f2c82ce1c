"""Text of any length as sentences, and sentences as text again: `split(text, "de").join(translations)`.

A line break ends a sentence unless it is said otherwise, so that lines and blank lines stay as they were. Within a line
the rules prefer two sentences left together to one torn apart. Every rule looks at no more than a few characters around
a candidate, so the time is linear in the text, whatever it is.
"""

from __future__ import annotations

import bisect
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from qkv.text.abbreviations import Abbreviations, abbreviations, code
from qkv.text.words import LINE_BREAKS, Span

Ends = Literal["lines", "marks", "nowhere"]
"""Where sentences may end: at line breaks and at full stops and their like, at these alone, or only where all ends."""

# From its first visible character on; what is before is a gap.
_LINE = re.compile(rf"\S[^{LINE_BREAKS}]*+")
_WHOLE = re.compile(r"\S.*+", re.DOTALL)
_CUTTING = {"lines": (_LINE, True), "marks": (_WHOLE, True), "nowhere": (_WHOLE, False)}
"""What is looked at at a time, and whether sentences end within it."""
_VISIBLE = re.compile(r"\S")

_SPACED_ENDS = ".!?…‼⁇⁈⁉\u037e؟۔։।॥።။។"
"""Ends of a sentence only where white space follows."""
_WIDE_ENDS = "。！？｡．"
_MORE_ENDS = {"el": ";"}
_WIDE_POINT = r"．(?=\d)"
# Directly behind an end a quotation mark closes, whichever way it bends, but in Chinese; a French one may have a space
# before it.
_CLOSERS = rf"""(?:["'”’«»›‹)\]}}）」』】》〉］｝*_]|(?<![{_WIDE_ENDS}])[“‘]|[ \u00a0\u202f]»(?!\w)|\[\d{{1,3}}\])*+"""
_OPENERS = "\"'“‘„‚«»‹›([{（「『【《〈［｛¿¡—–-*_•·#>§†‡ \u00a0\u202f\u3000\t"
_GOING_ON = ",;:.!?…、，；："
_QUOTING = "とっ"

_LIST_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[^\W\d_]|[ivxlcIVXLC]{1,6})[.)\]]+|[-*•·–—]+")
_LIST_ITEM = re.compile(r"\(?(?:[^\W\d_][.)]|[ivx]{1,4}\))\s")
# Before a number, a dash may be its sign.
_ITEM = re.compile(r"(?:[-–—*•·▪◦‣►●○■□✓→]++(?!\s*+\d)|\(?(?:[^\W\d_]|\d{1,3}|[ivx]{1,4})\))\s++(?=\S)")
_ACRONYM = re.compile(r"[^\W\d_]{1,2}(?:\.-?[^\W\d_]{1,2})+")
_ORDINAL = re.compile(r"(?:\d{1,2}\.)?\d{1,2}|[IVXLC]{2,6}")
_STARTER = re.compile(r"[^\W\d_]++(?!\.)")
_BESIDE_WORDS = re.compile(r"[\s\"'’“”„«»()\[\]{},:]")
_FAR = 40
"""Characters that are looked at on either side of a candidate."""

# Scripts that have no space between sentences either; Korean and Thai have one.
_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

_CUTS = (re.compile(r";(?=\s)|；"), re.compile(r",(?=\s)|[，、،؛]|(?<=\s)[–—](?=\s)"), re.compile(r"(?=\s)"))
"""Where a sentence that is too long is cut, the best place first."""
_MOST_MARKS = 32


@dataclass(frozen=True)
class Pieces:
    """A text as sentences and what stood before, between and after them: white space, nothing, or what has no words."""

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]
    """One more than there are sentences."""

    def join(self, sentences: Sequence[str]) -> str:
        """The text with these sentences in the places of its own.

        White space stays as it was, but that sentences which touched get a space in a script that has them, and lose
        it in one that has none.
        """
        gaps = self.gaps_between(sentences)
        return "".join(part for pair in zip(gaps, (*sentences, ""), strict=True) for part in pair)

    def spans(self, sentences: Sequence[str]) -> list[Span]:
        """Where each of these sentences stands in what `join` makes of them."""
        gaps = self.gaps_between(sentences)
        ends = itertools.accumulate(len(gap + sentence) for gap, sentence in zip(gaps, sentences, strict=False))
        return [Span(end - len(sentence), end) for end, sentence in zip(ends, sentences, strict=True)]

    def within(self, limit: int, measure: Callable[[str], int]) -> Pieces:
        """The same text with every sentence that measures more than `limit` cut, at the best places there are."""
        sentences: list[str] = []
        gaps = [self.gaps[0]]
        for sentence, gap in zip(self.sentences, self.gaps[1:], strict=True):
            parts = [(sentence, "")] if measure(sentence) <= limit else [*_cut(sentence, limit, measure)]
            sentences += [part for part, _ in parts]
            gaps += [space for _, space in parts[:-1]] + [gap]
        return Pieces(tuple(sentences), tuple(gaps))

    def in_words(self) -> Pieces:
        """The same text with sentences of words: the mark of a list before one, and what has no letter, are gaps.

        A whole number is left, which may be said in words.
        """
        sentences: list[str] = []
        gaps = [self.gaps[0]]
        for sentence, gap in zip(self.sentences, self.gaps[1:], strict=True):
            if any(map(str.isalpha, sentence)) or sentence.isdecimal():
                mark = _ITEM.match(sentence)
                begin = 0 if mark is None else mark.end()
                gaps[-1] += sentence[:begin]
                sentences.append(sentence[begin:])
                gaps.append(gap)
            else:
                gaps[-1] += sentence + gap
        return Pieces(tuple(sentences), tuple(gaps))

    def gaps_between(self, sentences: Sequence[str]) -> list[str]:
        """What stands before, between and behind these sentences in what `join` makes of them."""
        if len(sentences) != len(self.sentences):
            raise ValueError(f"{len(sentences)} sentences for {len(self.sentences)} places")
        gaps = list(self.gaps)
        for place in range(1, len(gaps) - 1):
            before = self.sentences[place - 1][-1:] + self.sentences[place][:1]
            after = sentences[place - 1][-1:] + sentences[place][:1]
            gaps[place] = _gap(gaps[place], before, after)
        return gaps


def split(text: str, language: str | None, *, ends: Ends = "lines", breaks: Sequence[int] = ()) -> Pieces:
    """The sentences of a text; a language's code, such as `de`, brings its abbreviations.

    A sentence also ends at each of the places in `breaks`, which are in order.
    """
    sentences: list[str] = []
    gaps: list[str] = []
    position = 0
    for first, behind in itertools.pairwise((0, *breaks, len(text))):
        for start, end in _spans(text, first, behind, language, ends):
            gaps.append(text[position:start])
            sentences.append(text[start:end])
            position = end
    return Pieces(tuple(sentences), (*gaps, text[position:]))


def _spans(text: str, first: int, behind: int, language: str | None, ends: Ends) -> Iterator[tuple[int, int]]:
    """Where the sentences are that stand between two places."""
    known = abbreviations(language)
    whole, at_marks = _CUTTING[ends]
    for match in whole.finditer(text, first, behind):
        line = match[0].rstrip()
        # Where nothing has a capital, small letters tell nothing.
        capitals = line != line.lower()
        start = 0
        for end in _ends(language).finditer(line) if at_marks else ():
            if end.end() == len(line) or not (line[end.end()].isspace() or end[1][-1] in _WIDE_ENDS):
                continue
            following = _VISIBLE.search(line, end.end())
            assert following is not None, "a line does not end in white space"
            if _is_boundary(line, start, end, following.start(), capitals, known):
                yield match.start() + start, match.start() + end.end()
                start = following.start()
        yield match.start() + start, match.start() + len(line)


def _is_boundary(
    line: str, start: int, end: re.Match[str], following: int, capitals: bool, known: Abbreviations
) -> bool:
    """Whether the sentence that began at `start` ends with `end`, and another one begins at `following`."""
    if line[following] in _GOING_ON:
        return False
    if end[1][-1] in _WIDE_ENDS:
        return end.end() == end.end(1) or line[following] not in _QUOTING
    after = line[following : following + _FAR].lstrip(_OPENERS)
    # A brand such as eBay begins a sentence as well as any other name, and so does an item: b) or c.
    if capitals and after[:1].islower() and not (after[1:2].isupper() or _LIST_ITEM.match(line, following)):
        return False
    if end.end() - start < _FAR and _LIST_MARK.fullmatch(line, start, end.end()):
        return False
    if end[1] != ".":
        return True
    word = _BESIDE_WORDS.split(line[max(0, end.start() - _FAR) : end.start()])[-1]
    return not word or _ends_sentence(word, after, known)


def _ends_sentence(word: str, after: str, known: Abbreviations) -> bool:
    """Whether a full stop behind `word` ends a sentence, where `after` follows."""
    small = word.lower()
    if small in known.never or small.endswith(known.endings):
        return False
    if after[:1].isdigit() and small in known.before_numbers:
        return False
    is_initial = len(word) == 1 and small != word.upper()
    is_ordinal = known.ordinals and _ORDINAL.fullmatch(word)
    if is_initial or is_ordinal or small in known.seldom or _ACRONYM.fullmatch(word):
        first = _STARTER.match(after)
        return first is not None and first[0].lower() in known.starters
    return True


@cache
def _ends(language: str | None) -> re.Pattern[str]:
    ends = re.escape(_SPACED_ENDS + _MORE_ENDS.get(code(language), ""))
    # Possessive, and never failing once begun: no run of ends is walked twice.
    return re.compile(rf"((?:(?!{_WIDE_POINT})[{ends}{_WIDE_ENDS}])++){_CLOSERS}")


def _gap(gap: str, before: str, after: str) -> str:
    """The gap between sentences whose ends there were `before` and are `after` in the translation."""
    was_spaced, is_spaced = _UNSPACED.search(before) is None, _UNSPACED.search(after) is None
    if gap == "" and not was_spaced and is_spaced:
        return " "
    if gap == " " and was_spaced and not is_spaced:
        return ""
    return gap


def _cut(sentence: str, limit: int, measure: Callable[[str], int]) -> Iterator[tuple[str, str]]:
    """Parts that measure no more than `limit`, each with the white space behind it; a character is never cut."""
    start, size = 0, max(limit, 1)
    while start < len(sentence):
        size = _longest_fitting(sentence, start, size, limit, measure)
        end = start + size
        if end < len(sentence):
            end = _best_cut(sentence, start, end)
            # A shorter text can measure more: its last word is cut into other subwords.
            while end > start + 1 and measure(sentence[start:end].rstrip()) > limit:
                end = _best_cut(sentence, start, end - 1)
        part = sentence[start:end].rstrip()
        following = _VISIBLE.search(sentence, end)
        next_start = len(sentence) if following is None else following.start()
        yield part, sentence[start + len(part) : next_start]
        start = next_start


def _longest_fitting(sentence: str, start: int, guess: int, limit: int, measure: Callable[[str], int]) -> int:
    """How many characters from `start` on fit, one at least; few and short texts are measured, beginning at a guess."""

    def fits(size: int) -> bool:
        return measure(sentence[start : start + size]) <= limit

    rest = len(sentence) - start
    high = min(guess, rest)
    while fits(high):
        if high == rest:
            return rest
        high = min(2 * high, rest)
    return max(1, bisect.bisect_left(range(high), True, lo=1, key=lambda size: not fits(size)) - 1)


def _best_cut(sentence: str, start: int, end: int) -> int:
    """The end of a part of at most `end`: behind the last semicolon of its second half, else comma, else any space."""
    middle = (start + end) // 2
    for place, least in zip(_CUTS, (middle, middle, start), strict=True):
        found = [match.end() for match in place.finditer(sentence, least, end + 1) if start < match.end() <= end]
        if found:
            return found[-1]
    for cut in range(end, max(start, end - _MOST_MARKS), -1):
        if not (unicodedata.category(sentence[cut]).startswith("M") or "\u200d" in sentence[cut - 1 : cut + 1]):
            return cut
    return end
