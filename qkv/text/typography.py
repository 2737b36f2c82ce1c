"""Quotation marks and apostrophes: a typewriter's, which a model may be taught alone, and those that a language prints.

Text of many hands has ' and ’, " and „“ for the same thing. A model that learns from all of it writes now this, now
that; taught the typewriter's alone, it has less to learn, and how a translation is printed follows its source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qkv.text.words import Span

_SINGLE = "’‘‛‚‹›"
_DOUBLE = "“”„‟«»"
_PRINTED = re.compile(f"[{_SINGLE}{_DOUBLE}]")
# „…“ and « … » are what German and French have in any text; these are in none that was merely typed.
_TYPESET = re.compile("[’‘‛”‟]")
# In French a space belongs to the mark; where » opens and « closes, as in German they may, it parts two words.
_PRINTED_OR_ITS_SPACE = re.compile(
    rf"(?<![\w.!?,;:][«‹])(?<=[«‹])\s|\s(?=[»›](?!\w))|(?P<single>[{_SINGLE}])|(?P<double>[{_DOUBLE}])"
)
_PLAINLY = {"single": "'", "double": '"', None: ""}
_PLAIN = re.compile("['\"]")
_MARKS = "'\"" + _SINGLE + _DOUBLE
# Right behind one of these a quotation begins.
_OPENERS = " \t\n\u00a0([{<-–—/="

_MIXED_SHARE, _MIXED_OFTEN = 0.05, 50
"""From which share and count of the rarer kind on a corpus is told to have two."""


class Quotes(NamedTuple):
    """What opens and closes a quotation."""

    opening: str
    closing: str


_ELSEWHERE = Quotes("“", "”")
_QUOTES: Mapping[str, Quotes] = {
    **dict.fromkeys(("de", "cs", "sk", "sl", "hr", "bg", "is", "lt", "et", "mk"), Quotes("„", "“")),
    **dict.fromkeys(("pl", "hu", "ro"), Quotes("„", "”")),
    **dict.fromkeys(("fi", "sv"), Quotes("”", "”")),
    **dict.fromkeys(("es", "it", "ca", "el", "no", "nb", "nn", "ru", "uk", "be"), Quotes("«", "»")),
    "fr": Quotes("«\u00a0", "\u00a0»"),
}
"""How a language prints a quotation; those of the others are as in English."""


class Edited(NamedTuple):
    """A text in which some marks were written otherwise, and where each of its characters, and its end, went."""

    text: str
    places: Sequence[int]

    def moved(self, span: Span) -> Span:
        """Where a part of the text before is in this one."""
        return Span(self.places[span.start], self.places[span.end])


class _Edit(NamedTuple):
    """What is written in place of one character."""

    place: int
    written: str


def is_printed(text: str) -> bool:
    """Whether a text has marks that no typewriter has."""
    return _PRINTED.search(text) is not None


def is_typeset(text: str) -> bool:
    """Whether a text has marks that come of typesetting alone: ’ and ”, as nobody types them."""
    return _TYPESET.search(text) is not None


def plain(text: str) -> str:
    """The text with a typewriter's quotation marks and apostrophes; it has the same words and signs."""
    return _edited(text, _plainly(text)).text if is_printed(text) else text


def marks(text: str) -> Counter[str]:
    """How often a text has apostrophes and quotation marks of each kind: `'`, `’`, `"` and `“”`."""
    found = Counter(re.findall(r"(?<=\w)['’](?=\w)", text))
    found['"'] = text.count('"')
    found["“”"] = sum(map(text.count, _DOUBLE))
    return found


def mixture(found: Mapping[str, int]) -> list[str]:
    """What a text has two kinds of, so often that a model would learn to mix them: `' (62 %) and ’ (38 %)`."""
    told = []
    for kinds in (("'", "’"), ('"', "“”")):
        counts = [found.get(kind, 0) for kind in kinds]
        if min(counts) >= max(_MIXED_OFTEN, _MIXED_SHARE * sum(counts)):
            shares = [f"{kind} ({100 * count / sum(counts):.0f} %)" for kind, count in zip(kinds, counts, strict=True)]
            told.append(" and ".join(shares))
    return told


def settled(text: str) -> str:
    """What of a text that grows is written as it will be: not the mark at its end, nor the space before one."""
    return text.rstrip(_MARKS + " \u00a0")


@dataclass(frozen=True)
class Style:
    """How the marks of a text are written: printed as its language does, or plain."""

    printed: bool
    language: str | None = None
    spared: tuple[str, ...] = ()
    """What stays as it is, wherever it stands."""

    def write(self, text: str) -> Edited:
        """The text in this style."""
        plainer = _edited(text, self._allowed(text, _plainly(text)))
        if not self.printed:
            return plainer
        # A mark is told by what stands around it, so that all are plain first.
        printed = _edited(plainer.text, self._allowed(plainer.text, _in_print(plainer.text, self._quotes)))
        return Edited(printed.text, [printed.places[place] for place in plainer.places])

    @property
    def _quotes(self) -> Quotes:
        return _QUOTES.get((self.language or "").partition("-")[0].lower(), _ELSEWHERE)

    def _allowed(self, text: str, edits: Iterable[_Edit]) -> Iterator[_Edit]:
        spared = [match.span() for one in self.spared for match in re.finditer(re.escape(one), text)]
        return (edit for edit in edits if not any(start <= edit.place < end for start, end in spared))


def _plainly(text: str) -> Iterator[_Edit]:
    for match in _PRINTED_OR_ITS_SPACE.finditer(text):
        yield _Edit(match.start(), _PLAINLY[match.lastgroup])


def _in_print(text: str, quotes: Quotes) -> Iterator[_Edit]:
    opened = {"'": False, '"': False}
    for match in _PLAIN.finditer(text):
        place, mark = match.start(), match[0]
        before, behind = text[place - 1 : place], text[place + 1 : place + 2]
        # Between two marks it is not seen whether one opens or closes, but known.
        opens = not opened[mark] if before and before in _MARKS else place == 0 or before in _OPENERS
        if mark == "'" and not opens and before.isalpha() and (behind.isalpha() or not opened[mark]):
            yield _Edit(place, "’")
            continue
        opened[mark] = opens
        # Single quotation marks stay plain, both of them: the second looks like an apostrophe.
        if mark == '"':
            yield _Edit(place, quotes.opening if opens else quotes.closing)


def _edited(text: str, edits: Iterable[_Edit]) -> Edited:
    parts: list[str] = []
    places: list[int] = []
    done = length = 0
    for place, written in edits:
        parts += [text[done:place], written]
        places += range(length, length + place - done + 1)
        length += place - done + len(written)
        done = place + 1
    parts.append(text[done:])
    places += range(length, length + len(text) - done + 1)
    return Edited("".join(parts), places)
