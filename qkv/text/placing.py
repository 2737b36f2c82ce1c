"""Inline tags are put back around the words that their words became.

    tagged = take_tags("The <b>red</b> house")
    put_tags("La maison rouge", tagged, [(Span(4, 7), Span(10, 15))])         # "La maison <b>rouge</b>"

Every tag comes out exactly once, whatever the alignment is, and what was inside what stays so. The words of both sides
are units; between two target units is a slot. A pair of tags goes around the slots of what its units became, its
children inside of it and apart from one another. What is around a sentence is around its translation, whether its words
are aligned or not. A pair whose words became nothing of their own goes around the word that a neighbour of theirs
became; a tag without a partner never comes to stand inside a word, unless it stood there.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qkv.text.tags import Tag, Tagged, is_stray
from qkv.text.units import Alignment, Side, aligned_units, edges, inside, is_wide, touch_alike
from qkv.text.words import Span

Sentences = Sequence[tuple[Span, Span]]
"""The sentences of the plain source in order, and where their translations are."""

_WORD = re.compile(r"\S+")
_NOWHERE = Span(0, 0)
_ENDING = frozenset(".,;:!?…)]}")
_BEGINNING = frozenset("([{")


def put_tags(
    translation: str,
    tagged: Tagged,
    alignment: Alignment,
    *,
    sentences: Sentences = (),
    write: Callable[[str], str] = str,
) -> str:
    """The translation with every tag of its source, each where the alignment says, or else about where it stood.

    `write` says how text is written between tags: HTML has entities for some characters.
    """
    if not tagged.tags:
        return write(translation)
    source_units, target_units, runs = aligned_units(tagged, translation, alignment)
    source, target = Side(tagged.plain, source_units), Side(translation, target_units)
    numbered = [(inside(one, source.starts), inside(other, target.starts)) for one, other in sentences]
    placed = _emitted(_tree(tagged, source), _Places(source, target, runs, numbered))
    parts = _inserted(target, tagged, source, placed)
    return "".join(part if is_tag else write(part) for part, is_tag in parts)


def by_words(source: str, target: str, pairs: Iterable[tuple[int, int]]) -> list[tuple[Span, Span]]:
    """The alignment that pairs of word numbers mean, where a word is what stands between white space."""
    sides = [[Span(*match.span()) for match in _WORD.finditer(text)] for text in (source, target)]
    return [
        (sides[0][one], sides[1][other])
        for one, other in pairs
        if 0 <= one < len(sides[0]) and 0 <= other < len(sides[1])
    ]


@dataclass
class _Node:
    """A pair of tags, or one that has no partner, and the units between."""

    opening: int
    closing: int | None
    units: Span
    leans_left: bool = False
    """Whether it belongs to the word before it rather than to that behind it."""
    is_stray: bool = False
    """Whether its partner is missing."""
    children: list[_Node] = field(default_factory=list)
    slots: Span = _NOWHERE
    """The number of target units before the opening tag, and before the closing one."""


def _tree(tagged: Tagged, source: Side) -> _Node:
    """The tags as a tree, under a root that stands for the whole text."""
    root = _Node(-1, None, Span(0, len(source.units)))
    path = [root]
    for number, tag in enumerate(tagged.tags):
        unit = bisect.bisect_right(source.ends, tag.position)
        if tag.partner is not None and tag.partner < number:
            closed = path.pop()
            closed.units = Span(closed.units.start, unit)
            continue
        node = _Node(number, tag.partner, Span(unit, unit), _leans_left(tag, source, unit), is_stray(tag))
        path[-1].children.append(node)
        if tag.partner is not None:
            path.append(node)
    return root


class _Places:
    """Where in the translation the children of a node belong."""

    def __init__(self, source: Side, target: Side, runs: Sequence[Sequence[Span]], sentences: Sentences) -> None:
        self.whole = Span(0, len(target.units))
        self._source = source
        self._target = target
        self._runs = runs
        self._aligned = [unit for unit, its_runs in enumerate(runs) if its_runs]
        self._aligned_words = [
            unit for unit in self._aligned if source.has_letters[unit] and any(map(target.holds_word, runs[unit]))
        ]
        # A sign between words, and not inside one, parts them.
        is_parting = (
            not has_letters and source.around[unit].start == unit for unit, has_letters in enumerate(source.has_letters)
        )
        self._parting = [0, *itertools.accumulate(is_parting)]
        self._sentences = [(source, target) for source, target in sentences if source.start < source.end]
        self._starts, self._ends = edges([source for source, _ in self._sentences])

    def settle(self, node: _Node) -> None:
        """Gives the children of a settled node their slots: inside it, in no other's way."""
        for child in node.children:
            child.slots = self._wanted(child, node)
        pairs = sorted((child for child in node.children if child.slots.start < child.slots.end), key=_by_slots)
        for one, other in itertools.pairwise(pairs):
            if other.slots.start < one.slots.end:
                if one.slots.start < other.slots.start:
                    one.slots = Span(one.slots.start, other.slots.start)
                else:
                    other.slots = Span(one.slots.end, max(one.slots.end, other.slots.end))
        pairs = [pair for pair in pairs if pair.slots.start < pair.slots.end]
        points: list[_Node] = []
        for child in node.children:
            if child.slots.start == child.slots.end:
                found = self._beside_its_neighbours(child, node, pairs)
                if found is None:
                    points.append(child)
                else:
                    child.slots = found
                    bisect.insort(pairs, child, key=_by_slots)
        starts = [pair.slots.start for pair in pairs]
        least = node.slots.start
        for point in points:
            slot = max(point.slots.start, least) if point.is_stray else point.slots.start
            # The last pair that begins before the point is the only one that can be around it.
            while (place := bisect.bisect_left(starts, slot) - 1) >= 0 and slot < (pair := pairs[place]).slots.end:
                is_behind = point.opening > pair.opening or point.is_stray
                beside = pair.slots.end if is_behind else pair.slots.start
                whole = self._target.around[beside]
                slot = min(whole.end, node.slots.end) if is_behind else max(whole.start, node.slots.start)
            point.slots = Span(slot, slot)
            # Tags without a partner keep their order, or two of them could look like a pair.
            least = max(least, slot) if point.is_stray else least
        node.children.sort(key=_by_slots)

    def _wanted(self, child: _Node, parent: _Node) -> Span:
        low, high = parent.slots
        if child.units == parent.units and child.units.start < child.units.end:
            return parent.slots
        runs = [run for unit in range(*child.units) for run in self._runs[unit]] + self._whole_sentences(child.units)
        runs = [Span(max(run.start, low), min(run.end, high)) for run in runs if run.start < high and run.end > low]
        if runs:
            slots = Span(min(run.start for run in runs), max(run.end for run in runs))
            return self._whole_letters(child.units, self._to_the_edges(child.units, slots), parent)
        start, end = (self._nearest(unit, parent, child.leans_left) for unit in child.units)
        slots = Span(start, max(start, end))
        if self._target.holds_word(slots):
            return self._whole_letters(child.units, slots, parent)
        # Where there are but signs, words have another place.
        return Span(start, start) if self._source.holds_word(child.units) else slots

    def _whole_letters(self, units: Span, slots: Span, parent: _Node) -> Span:
        """These slots inside the parent, each beside an apostrophe only where its tag was."""
        moved = self._target.off_apostrophes(slots)
        start, end = (
            slot if touch_alike(self._source, unit, self._target, slot) else other
            for unit, slot, other in zip(units, slots, moved, strict=True)
        )
        return Span(max(start, parent.slots.start), min(end, parent.slots.end))

    def _beside_its_neighbours(self, child: _Node, parent: _Node, pairs: Sequence[_Node]) -> Span | None:
        """What a neighbour became, for a pair whose words became nothing else: a compound has both in one word."""
        if child.closing is None or not self._source.holds_word(child.units):
            return None
        low, high = parent.slots
        found: list[tuple[int, Span]] = []
        for unit in self._neighbours(child.units):
            run = Span(min(run.start for run in self._runs[unit]), max(run.end for run in self._runs[unit]))
            own = self._source.units[unit]
            # What grew in translation has more likely taken in another word; if neither did, the one behind has.
            grown = max(0, len(self._target.part(run)) - (own.end - own.start))
            run = self._whole_letters(child.units, run, parent)
            place = bisect.bisect_left(pairs, run.end, key=lambda pair: pair.slots.start) - 1
            is_free = place < 0 or pairs[place].slots.end <= run.start
            if low <= run.start < run.end <= high and is_free and self._target.holds_word(run):
                found.append((-grown, run))
        return min(found, key=lambda one: one[0])[1] if found else None

    def _neighbours(self, units: Span) -> Iterator[int]:
        """The next aligned words behind and before these units, of the same sentence and with no sign between."""
        words = self._aligned_words
        behind, before = bisect.bisect_left(words, units.end), bisect.bisect_left(words, units.start) - 1
        if behind < len(words) and self._are_together(units.end - 1, words[behind]):
            yield words[behind]
        if before >= 0 and self._are_together(words[before], units.start):
            yield words[before]

    def _are_together(self, one: int, other: int) -> bool:
        return self._parting[one] == self._parting[other] and bisect.bisect_right(
            self._starts, one
        ) == bisect.bisect_right(self._starts, other)

    def _whole_sentences(self, units: Span) -> list[Span]:
        """The translations of the sentences that these units are all of."""
        first, behind = bisect.bisect_left(self._starts, units.start), bisect.bisect_right(self._ends, units.end)
        return [target for _, target in self._sentences[first:behind] if target.start < target.end]

    def _to_the_edges(self, units: Span, slots: Span) -> Span:
        """What begins or ends with its sentence does so in the translation, if nothing from outside comes between."""
        start, end = slots
        first, last = bisect.bisect_right(self._starts, units.start) - 1, bisect.bisect_left(self._ends, units.end)
        if first >= 0 and self._starts[first] == units.start:
            edge = self._sentences[first][1].start
            if not self._reaches(Span(units.end, self._ends[first]), Span(edge, start)):
                start = min(start, edge)
        if last < len(self._ends) and self._ends[last] == units.end:
            edge = self._sentences[last][1].end
            if not self._reaches(Span(self._starts[last], units.start), Span(end, edge)):
                end = max(end, edge)
        return Span(start, end)

    def _reaches(self, units: Span, slots: Span) -> bool:
        """Whether some of these units became something there."""
        return any(
            run.start < slots.end and run.end > slots.start for unit in range(*units) for run in self._runs[unit]
        )

    def _nearest(self, unit: int, parent: _Node, leans_left: bool) -> int:
        """The slot before what a unit of the source became, or behind what the one before it did."""
        low, high = parent.slots
        first, behind = parent.units
        if unit <= first or unit >= behind:
            return low if unit <= first else high
        sentence = bisect.bisect_left(self._starts, unit)
        if sentence < len(self._starts) and self._starts[sentence] == unit:
            return min(max(self._sentences[sentence][1].start, low), high)
        place = bisect.bisect_left(self._aligned, unit)
        right = self._aligned[place] if place < len(self._aligned) else None
        left = self._aligned[place - 1] if place else None
        if right is not None and (left is None or right - unit + leans_left <= unit - 1 - left):
            slot = min(run.start for run in self._runs[right])
            slot = slot if touch_alike(self._source, unit, self._target, slot) else self._target.around[slot].start
        elif left is not None:
            slot = max(run.end for run in self._runs[left])
            slot = slot if touch_alike(self._source, unit, self._target, slot) else self._target.around[slot].end
        else:
            slot = self._target.around[low + round((unit - first) / (behind - first) * (high - low))].start
        return min(max(slot, low), high)


def _by_slots(node: _Node) -> tuple[Span, int]:
    return node.slots, node.opening


def _emitted(root: _Node, places: _Places) -> Iterator[tuple[int, int]]:
    """The tags in the order in which they come out, each with its slot."""
    root.slots = places.whole
    waiting: list[_Node | tuple[int, int]] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            yield node
            continue
        places.settle(node)
        if node is not root:
            yield node.opening, node.slots.start
        if node.closing is not None:
            waiting.append((node.closing, node.slots.end))
        waiting += reversed(node.children)


def _inserted(
    target: Side, tagged: Tagged, source: Side, placed: Iterable[tuple[int, int]]
) -> Iterator[tuple[str, bool]]:
    """The parts of the translation and the tags between them, each with whether it is a tag."""
    translation = target.text
    spacing = _Spacing(tagged)
    position = 0
    for slot, pairs in itertools.groupby(placed, key=lambda pair: pair[1]):
        start, end = target.gaps[slot]
        group = [(number, tagged.tags[number]) for number, _ in pairs]
        if translation[start:end] == " " and any(tag.stands_for_space for _, tag in group):
            yield translation[position:start], False
            yield from ((tag.text, True) for _, tag in group)
            spacing.reads(" ")
            position = end
            continue
        for number, tag in group:
            unit = bisect.bisect_right(source.ends, tag.position)
            gap = source.gaps[unit]
            is_alike = tagged.plain[slice(*gap)] == translation[start:end]
            leaning = start if _leans_left(tag, source, unit) else end
            place = max(start + tag.position - gap.start if is_alike else leaning, position)
            is_edge = unit == slot == 0 or (unit, slot) == (len(source.units), len(target.units))
            is_alike = is_alike and (start < end or is_edge or touch_alike(source, unit, target, slot))
            yield translation[position:place], False
            spacing.reads(translation[position:place])
            yield spacing.spaced(number, translation[place : place + 1], is_alike=is_alike), True
            position = place
    yield translation[position:], False


class _Spacing:
    """The white space on both sides of a tag that stands between words: what follows a word, and not a comma."""

    def __init__(self, tagged: Tagged) -> None:
        self._tags = tagged.tags
        self._before = [*_parted(tagged)]
        self._behind = [*_parted(_mirrored(tagged))][::-1]
        self._last = ""
        self._single: int | None = None
        """The tag without a partner that was written last, if nothing is between it and what comes."""

    def reads(self, text: str) -> None:
        """Text comes out."""
        if text:
            self._last, self._single = text[-1], None

    def spaced(self, number: int, behind: str, *, is_alike: bool) -> str:
        """What is written of a tag that has this character behind it; where all is alike, its own white space stays."""
        tag = self._tags[number]
        text = tag.text
        if tag.partner is None and not tag.stands_for_space:
            bare = text.strip()
            space = text.replace(bare, "", 1) or " "
            follows = self._single is not None and not self._touch(self._single, number)
            if not is_alike:
                follows = follows or _is_letter(self._last) or self._last in _ENDING
                leads = _is_letter(behind) or behind in _BEGINNING
                text = bare + space * (leads and self._behind[number])
            if follows and self._before[number] and not text[0].isspace():
                text = space + text
        self.reads(next((end for end in (text[-1], text[0]) if end.isspace()), ""))
        if tag.partner is None and not is_stray(tag) and not text[-1].isspace():
            self._single = number
        return text

    def _touch(self, one: int, other: int) -> bool:
        """Whether nothing was between these tags."""
        first, second = self._tags[one], self._tags[other]
        return (
            other == one + 1
            and first.position == second.position
            and not (first.text[-1].isspace() or second.text[0].isspace())
        )


def _parted(tagged: Tagged) -> Iterator[bool]:
    """For each tag whether something else than a letter is before it."""
    is_parted, position = True, 0
    for tag in tagged.tags:
        if tag.position != position:
            position = tag.position
            is_parted = not _is_letter(tagged.plain[position - 1])
        yield is_parted or tag.text[0].isspace()
        is_parted = is_parted or tag.text[0].isspace() or tag.text[-1].isspace()


def _mirrored(tagged: Tagged) -> Tagged:
    length = len(tagged.plain)
    tags = (tag._replace(text=tag.text[::-1], position=length - tag.position) for tag in reversed(tagged.tags))
    return Tagged(tagged.plain[::-1], tuple(tags))


def _is_letter(character: str) -> bool:
    return character.isalnum() and not is_wide(character)


def _leans_left(tag: Tag, source: Side, unit: int) -> bool:
    if tag.text.lstrip().startswith("</"):
        return True
    gap = source.gaps[unit]
    if tag.partner is not None or tag.position > gap.start:
        return False
    # One that touches a word, and a sign behind it, is the word's.
    beside = source.beside(unit)
    return gap.start < gap.end or (beside is not None and beside[0][-1].isalnum() and not beside[1][0].isalnum())
