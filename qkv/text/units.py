"""The words of a text and of its translation as units: what tags can stand before and behind, and what became what."""

from __future__ import annotations

import bisect
import itertools
import unicodedata
from collections.abc import Iterable, Sequence

from qkv.text.protect import find
from qkv.text.tags import Tag, Tagged
from qkv.text.words import Span, words

Alignment = Iterable[tuple[Span, Span]]
"""Parts of the plain source, and the parts of the translation that they became."""

_WHOLE = ("placeholder", "url", "e-mail")
_NOWHERE = Span(0, 0)
_APOSTROPHES = "'’ʼ"


class Side:
    """A text and its units, and the words, as people write them, that its slots are in."""

    def __init__(self, text: str, units: Sequence[Span]) -> None:
        self.text = text
        self.units = units
        self.starts, self.ends = edges(units)
        self.gaps = gaps(units, len(text))
        self.has_letters = [any(map(str.isalnum, text[slice(*unit)])) for unit in units]
        self.around = self._around()
        """For each slot those before and behind the word it is inside of, such as d'abord; between words, itself."""

    def beside(self, slot: int) -> tuple[str, str] | None:
        """The units on both sides of a slot, if they touch."""
        if not 0 < slot < len(self.units) or self.ends[slot - 1] < self.starts[slot]:
            return None
        return self.text[slice(*self.units[slot - 1])], self.text[slice(*self.units[slot])]

    def part(self, slots: Span) -> str:
        """The text between two slots."""
        return self.text[self.starts[slots.start] : self.ends[slots.end - 1]]

    def holds_word(self, slots: Span) -> bool:
        return any(self.has_letters[slots.start : slots.end])

    def off_apostrophes(self, slots: Span) -> Span:
        """The same slots, but for those that would part an apostrophe from what it belongs to."""
        start, end = slots
        if apostrophe := self._apostrophe(start):
            unit, is_elision = apostrophe
            # l'|utilisateur, but |user's.
            start = unit + 1 if is_elision and unit + 1 < end else unit - 1
        if apostrophe := self._apostrophe(end):
            unit, is_elision = apostrophe
            is_possessive = end == unit and self.text[slice(*self.units[unit + 1])] == "s"
            end = unit + 1 if is_elision else end if is_possessive else unit + 2
        return Span(start, end)

    def _apostrophe(self, slot: int) -> tuple[int, bool] | None:
        """The apostrophe between letters that a slot is beside, and whether it ends an elision such as l' or qu'."""
        for unit in (slot, slot - 1):
            if (
                self.around[slot].start < unit < self.around[slot].end - 1
                and self.text[slice(*self.units[unit])] in _APOSTROPHES
            ):
                before, behind = (self.units[place] for place in (unit - 1, unit + 1))
                return unit, before.end - before.start <= behind.end - behind.start
        return None

    def _around(self) -> list[Span]:
        around = [Span(slot, slot) for slot in range(len(self.gaps))]
        first = 0
        for slot in range(1, len(self.gaps)):
            if slot < len(self.units) and self._is_joined(slot):
                continue
            start, end = first, slot
            while start < end and not self.has_letters[start]:
                start += 1
            while start < end and not self.has_letters[end - 1]:
                end -= 1
            around[start + 1 : end] = [Span(start, end)] * (end - start - 1)
            first = slot
        return around

    def _is_joined(self, slot: int) -> bool:
        """Whether the units on both sides touch as those of one word do: those that know no spaces do otherwise."""
        place = self.ends[slot - 1]
        if place < self.starts[slot] or all(self.has_letters[slot - 1 : slot + 1]):
            return False
        return not any(is_wide(character) for character in self.text[place - 1 : place + 1])


def touch_alike(source: Side, unit: int, target: Side, slot: int) -> bool:
    """Whether the same units touch in two slots, which is where a tag inside a word may stay."""
    beside = source.beside(unit)
    return beside is not None and beside == target.beside(slot)


def is_wide(character: str) -> bool:
    """Whether a character is of a script, such as Chinese, whose words and signs have no space between them."""
    return unicodedata.east_asian_width(character) in "WF"


def aligned_units(
    tagged: Tagged, translation: str, alignment: Alignment
) -> tuple[list[Span], list[Span], list[list[Span]]]:
    """The words of both sides, cut where a tag stands inside one, and for each of the source the runs it became."""
    source, target = _unbroken(tagged.plain), _unbroken(translation)
    runs: list[list[Span]] = [[] for _ in source]
    source_edges, target_edges = edges(source), edges(target)
    for one, other in alignment:
        run = _covered(other, *target_edges)
        for unit in range(*_covered(one, *source_edges)):
            if run.start < run.end:
                runs[unit].append(run)
    cuts = _cuts_inside(source, tagged.tags)
    copies = _copies(tagged.plain, translation, source, target, runs, cuts)
    return _cut(source, target, runs, cuts, copies)


def _unbroken(text: str) -> list[Span]:
    """The words of a text; a placeholder or an address is one, for a tag inside it would break it."""
    kept = [one.span for one in find(text, kinds=_WHOLE)]
    result: list[Span] = []
    place = 0
    for word in words(text):
        while place < len(kept) and kept[place].end <= word.start:
            place += 1
        if place < len(kept) and kept[place].start < word.end:
            word = Span(min(word.start, kept[place].start), max(word.end, kept[place].end))
        if result and word.start < result[-1].end:
            before = result.pop()
            word = Span(before.start, max(before.end, word.end))
        result.append(word)
    return result


def edges(spans: Sequence[Span]) -> tuple[list[int], list[int]]:
    return [span.start for span in spans], [span.end for span in spans]


def _covered(part: Span, starts: Sequence[int], ends: Sequence[int]) -> Span:
    """The numbers of the words that a part of the text touches."""
    if part[0] >= part[1]:
        return _NOWHERE
    return Span(bisect.bisect_right(ends, part[0]), bisect.bisect_left(starts, part[1]))


def inside(part: Span, starts: Sequence[int]) -> Span:
    """The numbers of the units that begin in a part of the text; of an empty one, where they would be."""
    return Span(*(bisect.bisect_left(starts, edge) for edge in part))


def _cuts_inside(source: Sequence[Span], tags: Sequence[Tag]) -> dict[int, list[int]]:
    """For words with tags inside, where those stand, from the beginning of the word."""
    starts, ends = edges(source)
    cuts: dict[int, list[int]] = {}
    for position in dict.fromkeys(tag.position for tag in tags):
        unit = bisect.bisect_right(ends, position)
        if unit < len(source) and starts[unit] < position:
            cuts.setdefault(unit, []).append(position - starts[unit])
    return cuts


def _copies(
    plain: str,
    translation: str,
    source: Sequence[Span],
    target: Sequence[Span],
    runs: Sequence[Sequence[Span]],
    cuts: dict[int, list[int]],
) -> dict[int, int]:
    """Which words with tags inside were translated by themselves, so that the tags have an exact place."""
    copies: dict[int, int] = {}
    taken: set[int] = set()
    for unit in cuts:
        word = plain[slice(*source[unit])]
        for place in itertools.chain.from_iterable(range(*run) for run in runs[unit]):
            if place not in taken and translation[slice(*target[place])] == word:
                copies[unit] = place
                taken.add(place)
                break
    return copies


def _cut(
    source: Sequence[Span],
    target: Sequence[Span],
    runs: Sequence[Sequence[Span]],
    cuts: dict[int, list[int]],
    copies: dict[int, int],
) -> tuple[list[Span], list[Span], list[list[Span]]]:
    """The words cut into units, and the runs in numbers of units."""
    target_cuts = {place: cuts[unit] for unit, place in copies.items()}
    target_units = [_parts(span, target_cuts.get(place, [])) for place, span in enumerate(target)]
    first = [0, *itertools.accumulate(map(len, target_units))]
    source_units: list[Span] = []
    unit_runs: list[list[Span]] = []
    for unit, span in enumerate(source):
        parts = _parts(span, cuts.get(unit, []))
        source_units += parts
        if unit in copies:
            start = first[copies[unit]]
            unit_runs += [[Span(start + number, start + number + 1)] for number in range(len(parts))]
        else:
            unit_runs += [[Span(first[run.start], first[run.end]) for run in runs[unit]] for _ in parts]
    return source_units, list(itertools.chain.from_iterable(target_units)), unit_runs


def _parts(span: Span, cuts: Sequence[int]) -> list[Span]:
    edges = [span.start, *(span.start + cut for cut in cuts), span.end]
    return [Span(*pair) for pair in itertools.pairwise(edges)]


def gaps(units: Sequence[Span], length: int) -> list[Span]:
    """What is before, between and after the units."""
    edges = [0, *itertools.chain.from_iterable(units), length]
    return [Span(*edges[place : place + 2]) for place in range(0, len(edges), 2)]
