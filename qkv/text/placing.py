"""Inline tags are put back around the words that their words became.

    tagged = take_tags("The <b>red</b> house")
    put_tags("La maison rouge", tagged, [(Span(4, 7), Span(10, 15))])         # "La maison <b>rouge</b>"

Every tag comes out exactly once, whatever the alignment is, and what was inside what stays so. The words of both sides
are units; between two target units is a slot. A pair of tags goes around the slots of what its units became, its
children inside of it and apart from one another.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qkv.text.protect import find
from qkv.text.tags import Tag, Tagged, is_stray
from qkv.text.words import Span, words

Alignment = Iterable[tuple[Span, Span]]
"""Parts of the plain source, and the parts of the translation that they became."""

_WORD = re.compile(r"\S+")
_WHOLE = ("placeholder", "url", "e-mail")
_NOWHERE = Span(0, 0)


def put_tags(translation: str, tagged: Tagged, alignment: Alignment, *, write: Callable[[str], str] = str) -> str:
    """The translation with every tag of its source, each where the alignment says, or else about where it stood.

    `write` says how text is written between tags: HTML has entities for some characters.
    """
    if not tagged.tags:
        return write(translation)
    source, target, runs = _aligned_units(tagged, translation, alignment)
    placed = _emitted(_tree(tagged, source), _Places(len(target), runs))
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


def _aligned_units(
    tagged: Tagged, translation: str, alignment: Alignment
) -> tuple[list[Span], list[Span], list[list[Span]]]:
    """The words of both sides, cut where a tag stands inside one, and for each of the source the runs it became."""
    source, target = _unbroken(tagged.plain), _unbroken(translation)
    runs: list[list[Span]] = [[] for _ in source]
    source_edges, target_edges = _edges(source), _edges(target)
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


def _edges(spans: Sequence[Span]) -> tuple[list[int], list[int]]:
    return [span.start for span in spans], [span.end for span in spans]


def _covered(part: Span, starts: Sequence[int], ends: Sequence[int]) -> Span:
    """The numbers of the words that a part of the text touches."""
    if part[0] >= part[1]:
        return _NOWHERE
    return Span(bisect.bisect_right(ends, part[0]), bisect.bisect_left(starts, part[1]))


def _cuts_inside(source: Sequence[Span], tags: Sequence[Tag]) -> dict[int, list[int]]:
    """For words with tags inside, where those stand, from the beginning of the word."""
    starts, ends = _edges(source)
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
    _, ends = _edges(source)
    gaps = _gaps(source, len(tagged.plain))
    root = _Node(-1, None, Span(0, len(source)))
    path = [root]
    for number, tag in enumerate(tagged.tags):
        unit = bisect.bisect_right(ends, tag.position)
        if tag.partner is not None and tag.partner < number:
            closed = path.pop()
            closed.units = Span(closed.units.start, unit)
            continue
        node = _Node(number, tag.partner, Span(unit, unit), _leans_left(tag, gaps[unit]), is_stray(tag))
        path[-1].children.append(node)
        if tag.partner is not None:
            path.append(node)
    return root


class _Places:
    """Where in the translation the children of a node belong."""

    def __init__(self, target_units: int, runs: Sequence[Sequence[Span]]) -> None:
        self.whole = Span(0, target_units)
        self._runs = runs
        self._aligned = [unit for unit, its_runs in enumerate(runs) if its_runs]

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
        runs = [
            Span(max(run.start, low), min(run.end, high))
            for unit in range(*child.units)
            for run in self._runs[unit]
            if run.start < high and run.end > low
        ]
        if runs:
            return Span(min(run.start for run in runs), max(run.end for run in runs))
        start, end = (self._nearest(unit, parent, child.leans_left) for unit in child.units)
        return Span(start, max(start, end))

    def _nearest(self, unit: int, parent: _Node, leans_left: bool) -> int:
        """The slot before what a unit of the source became, or behind what the one before it did."""
        low, high = parent.slots
        first, behind = parent.units
        if unit <= first or unit >= behind:
            return low if unit <= first else high
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
    source_gaps, target_gaps = _gaps(source, len(tagged.plain)), _gaps(target, len(translation))
    _, source_ends = _edges(source)
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
            yield tag.text, True
            position = place
    yield translation[position:], False


def _gaps(units: Sequence[Span], length: int) -> list[Span]:
    """What is before, between and after the units."""
    edges = [0, *itertools.chain.from_iterable(units), length]
    return [Span(*edges[place : place + 2]) for place in range(0, len(edges), 2)]


def _leans_left(tag: Tag, gap: Span) -> bool:
    is_closing = tag.text.lstrip().startswith("</")
    return is_closing or (tag.partner is None and tag.position == gap.start < gap.end)
