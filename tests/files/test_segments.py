"""Segments: what is at their edges stays outside, in its order, however much it is."""

from __future__ import annotations

import pytest

from qkv.files.segments import Marking, Segment, written
from tests.files.effort import LINEAR, growth_of


def marked(edges: int) -> Marking:
    """Text between tags that nothing closes and nothing opens, and pairs around it all."""
    marking = Marking()
    for number in range(edges):
        marking.opening("b", f"<b{number}>")
        marking.opening("i", f"<i{number}>")
        marking.single(f"<{number}>", f"<{number}/>")
    marking.text(" words ", " words ")
    for number in range(edges):
        marking.closing("b", f"</b{number}>")
        marking.closing("u", f"</u{number}>", f"<u{number}>")
    return marking


@pytest.mark.parametrize("edges", [0, 1, 2, 5])
def test_what_is_at_the_edges_stays_outside_in_its_order(edges: int) -> None:
    parts = marked(edges).parts(written(str))
    (segment,) = (part for part in parts if isinstance(part, Segment))
    assert (segment.text, segment.raw, segment.marks) == ("words", ["words"], {})
    place = parts.index(segment)
    before = "".join(f"<b{number}><i{number}><{number}><{number}/>" for number in range(edges))
    behind = "".join(f"</b{number}></u{number}><u{number}>" for number in range(edges))
    assert ("".join(map(str, parts[:place])), "".join(map(str, parts[place + 1 :]))) == (f"{before} ", f" {behind}")


def test_time_grows_with_what_is_at_the_edges() -> None:
    def made(count: int) -> Marking:
        marking = Marking()
        marking.text("words", "words")
        for _ in range(count):
            marking.closing("b", "</b>")
        return marking

    assert growth_of(made, lambda marking: marking.parts(written(str)), 12_000) < LINEAR
