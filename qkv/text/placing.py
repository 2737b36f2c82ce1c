"""Inline tags are put back around the words that their words became.

    tagged = take_tags("The <b>red</b> house")
    put_tags("La maison rouge", tagged, [(Span(4, 7), Span(10, 15))])         # "La maison <b>rouge</b>"

Every tag comes out exactly once, whatever the alignment is, and what was inside what stays so. The words of both sides
are units; between two target units is a slot. A pair of tags goes around the slots of what its units became, its
children inside of it and apart from one another. What is around a sentence is around its translation, whether its words
are aligned or not.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qkv.text.tags import Tag, Tagged, is_stray
from qkv.text.units import Alignment, aligned_units, edges, gaps, inside
from qkv.text.words import Span

Sentences = Sequence[tuple[Span, Span]]
"""The sentences of the plain source in order, and where their translations are."""

_WORD = re.compile(r"\S+")
_NOWHERE = Span(0, 0)


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
    source, target, runs = aligned_units(tagged, translation, alignment)
    (source_starts, _), (target_starts, _) = edges(source), edges(target)
    numbered = [(inside(one, source_starts), inside(other, target_starts)) for one, other in sentences]
    placed = _emitted(_tree(tagged, source), _Places(len(target), runs, numbered))
    parts = _inserted(translation, target, tagged, source, placed)
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


def _tree(tagged: Tagged, source: Sequence[Span]) -> _Node:
    """The tags as a tree, under a root that stands for the whole text."""
    _, ends = edges(source)
    between = gaps(source, len(tagged.plain))
    root = _Node(-1, None, Span(0, len(source)))
    path = [root]
    for number, tag in enumerate(tagged.tags):
        unit = bisect.bisect_right(ends, tag.position)
        if tag.partner is not None and tag.partner < number:
            closed = path.pop()
            closed.units = Span(closed.units.start, unit)
            continue
        node = _Node(number, tag.partner, Span(unit, unit), _leans_left(tag, between[unit]), is_stray(tag))
        path[-1].children.append(node)
        if tag.partner is not None:
            path.append(node)
    return root


class _Places:
    """Where in the translation the children of a node belong."""

    def __init__(self, target_units: int, runs: Sequence[Sequence[Span]], sentences: Sentences) -> None:
        self.whole = Span(0, target_units)
        self._runs = runs
        self._aligned = [unit for unit, its_runs in enumerate(runs) if its_runs]
        self._sentences = [(source, target) for source, target in sentences if source.start < source.end]
        self._starts, self._ends = edges([source for source, _ in self._sentences])

    def settle(self, node: _Node) -> None:
        """Gives the children of a settled node their slots: inside it, in no other's way."""
        pairs: list[_Node] = []
        points: list[_Node] = []
        for child in node.children:
            child.slots = self._wanted(child, node)
            (pairs if child.slots.start < child.slots.end else points).append(child)
        pairs.sort(key=lambda child: (child.slots, child.opening))
        for one, other in itertools.pairwise(pairs):
            if other.slots.start < one.slots.end:
                if one.slots.start < other.slots.start:
                    one.slots = Span(one.slots.start, other.slots.start)
                else:
                    other.slots = Span(one.slots.end, max(one.slots.end, other.slots.end))
        starts = [pair.slots.start for pair in pairs]
        least = node.slots.start
        for point in points:
            slot = max(point.slots.start, least) if point.is_stray else point.slots.start
            # The last pair that begins before the point is the only one that can be around it.
            place = bisect.bisect_left(starts, slot) - 1
            if place >= 0 and slot < (pair := pairs[place]).slots.end:
                slot = pair.slots.end if point.opening > pair.opening or point.is_stray else pair.slots.start
            point.slots = Span(slot, slot)
            # Tags without a partner keep their order, or two of them could look like a pair.
            least = max(least, slot) if point.is_stray else least
        node.children.sort(key=lambda child: (child.slots, child.opening))

    def _wanted(self, child: _Node, parent: _Node) -> Span:
        low, high = parent.slots
        if child.units == parent.units and child.units.start < child.units.end:
            return parent.slots
        runs = [run for unit in range(*child.units) for run in self._runs[unit]] + self._whole_sentences(child.units)
        runs = [Span(max(run.start, low), min(run.end, high)) for run in runs if run.start < high and run.end > low]
        if runs:
            slots = Span(min(run.start for run in runs), max(run.end for run in runs))
            start, end = self._to_the_edges(child.units, slots)
            return Span(max(start, low), min(end, high))
        start, end = (self._nearest(unit, parent, child.leans_left) for unit in child.units)
        return Span(start, max(start, end))

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
            return min(max(min(run.start for run in self._runs[right]), low), high)
        if left is not None:
            return min(max(max(run.end for run in self._runs[left]), low), high)
        return low + round((unit - first) / (behind - first) * (high - low))


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
    translation: str, target: Sequence[Span], tagged: Tagged, source: Sequence[Span], placed: Iterable[tuple[int, int]]
) -> Iterator[tuple[str, bool]]:
    """The parts of the translation and the tags between them, each with whether it is a tag."""
    source_gaps, target_gaps = gaps(source, len(tagged.plain)), gaps(target, len(translation))
    _, source_ends = edges(source)
    position = 0
    for slot, group in itertools.groupby(placed, key=lambda pair: pair[1]):
        start, end = target_gaps[slot]
        tags = [tagged.tags[number] for number, _ in group]
        if translation[start:end] == " " and any(tag.stands_for_space for tag in tags):
            yield translation[position:start], False
            yield from ((tag.text, True) for tag in tags)
            position = end
            continue
        for tag in tags:
            gap = source_gaps[bisect.bisect_right(source_ends, tag.position)]
            if tagged.plain[slice(*gap)] == translation[start:end]:
                place = start + tag.position - gap.start
            else:
                place = start if _leans_left(tag, gap) else end
            place = max(place, position)
            yield translation[position:place], False
            yield _spaced(tag, translation[:place][-1:]), True
            position = place
    yield translation[position:], False


def _spaced(tag: Tag, before: str) -> str:
    """The tag behind this character; one that stands between words is parted from the word before, not from a comma."""
    bare = tag.text.rstrip()
    if tag.partner is not None or not before or before.isspace():
        return tag.text
    return tag.text[len(bare) :] + bare


def _leans_left(tag: Tag, gap: Span) -> bool:
    is_closing = tag.text.lstrip().startswith("</")
    return is_closing or (tag.partner is None and tag.position == gap.start < gap.end)
