"""Quotation marks and apostrophes: a typewriter's, which a model may be taught alone, and those that a language prints.

Text of many hands has ' and ’, " and „“ for the same thing. A model that learns from all of it writes now this, now
that; one that reads and writes the typewriter's alone does not, and how a translation is printed follows its source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from qkv.text.editing import Edit, Edited, edited, places_of

_SINGLE = "’‘‛‚‹›"
_DOUBLE = "“”„‟«»"
_MARKS = "'\"" + _SINGLE + _DOUBLE
_PRINTED = re.compile(f"[{_SINGLE}{_DOUBLE}]")
# „…“ and « … » are what German and French have in any text; these are in none that was merely typed.
_TYPESET = re.compile("[’”]")
# In French a space belongs to the mark; where » opens and « closes, as in German they may, it parts two words.
_PRINTED_OR_ITS_SPACE = re.compile(
    rf"(?<![\w.!?,;:][«‹])(?<=[«‹])\s|\s(?=[»›](?!\w))|(?P<single>[{_SINGLE}])|(?P<double>[{_DOUBLE}])"
)
_PLAINLY = {"single": "'", "double": '"', None: ""}
# Behind one of these, or a space, a quotation may begin; before one of the others none does.
_BEFORE_OPENING = "([–—*_~|#>¿¡:,;…"
_NOT_OPENED_BEFORE = '.,;:!?)]}"'
# Apostrophes stand between letters, behind one, or before one of a few shortened words.
_OPENS_SINGLE = re.compile(
    r"(?<![\w'])'(?!(?:tis|twas|em|til|cause|n|s|t|\d\ds)\b)(?=[^\s.,;:!?)\]}'\"]|\.\.)", re.IGNORECASE
)
_CLOSES_SINGLE = re.compile(r"(?<=[^\s'(\[])'(?!\w)")
_SINGLE_MARK = re.compile(rf"(?<!\w)['{_SINGLE}]|['{_SINGLE}](?!\w)")
# The students' books: only what comes later tells this from the end of a quotation.
_MAY_OWN = re.compile(r"(?<=[sxzSXZ])'(?=[ \u00a0]\w)")
_MARK_OR_CODE = re.compile("[`<>{})'\"]")
_TAG_BEGINS = re.compile(r"(?<!\w)<[/!]?[A-Za-z][\w:-]*[\s/>]")
_CALL_BEGINS = re.compile(r"\w\($")

_MIXED_SHARE, _MIXED_OFTEN = 0.05, 50
"""From which share and count of the rarer kind on a corpus is told to have two."""


class Quotes(NamedTuple):
    """What opens and closes a quotation."""

    opening: str
    closing: str


_ELSEWHERE = Quotes("“", "”")
_SPACED = Quotes("« ", " »")
_SINGLE_QUOTES = (Quotes("‘", "’"), Quotes("‚", "‘"), Quotes("‹", "›"))
_QUOTES: Mapping[str, Quotes] = {
    **dict.fromkeys(("de", "cs", "sk", "sl", "hr", "sr", "bg", "is", "lt", "et", "mk"), Quotes("„", "“")),
    **dict.fromkeys(("pl", "hu", "ro", "bs"), Quotes("„", "”")),
    **dict.fromkeys(("fi", "sv"), Quotes("”", "”")),
    **dict.fromkeys(("es", "it", "ca", "el", "no", "nb", "nn", "ru", "uk", "be", "hy", "fa"), Quotes("«", "»")),
    **dict.fromkeys(("de_CH", "pt_PT"), Quotes("«", "»")),
    "fr": Quotes("«\u00a0", "\u00a0»"),
}
"""How a language prints a quotation; those of the others are as in English."""


def has_marks(text: str) -> bool:
    """Whether a text has quotation marks or apostrophes at all."""
    return any(mark in text for mark in _MARKS)


def is_printed(text: str) -> bool:
    """Whether a text has marks that no typewriter has."""
    return _PRINTED.search(text) is not None


def is_typeset(text: str) -> bool:
    """Whether a text has marks that nobody types: ’ or ”."""
    return _TYPESET.search(text) is not None


def double_marks(text: str) -> int:
    """How many double quotation marks a text has, if its quotations have no others; an odd number is of a part."""
    typed = plain(text)
    places = [*_outside_code(typed)]
    marks = [place for place in places if typed[place] == '"']
    # 27" alone is a length.
    if all(typed[place - 1 : place].isdigit() for place in marks):
        return 0
    single = any(
        _OPENS_SINGLE.match(typed, place) or (_CLOSES_SINGLE.match(typed, place) and not typed[place - 1].isalpha())
        for place in places
    )
    return 0 if single else len(marks)


def plain(text: str) -> str:
    """The text with a typewriter's quotation marks and apostrophes; it has the same words and signs."""
    return edited(text, _plainly(text)).text if is_printed(text) else text


def marks(text: str) -> Counter[str]:
    """How often a text has apostrophes and quotation marks of each kind: `'`, `’`, `"` and `„ “ «`."""
    found = Counter(re.findall(r"(?<=\w)['’](?=\w)", text))
    found['"'] = text.count('"')
    found["„ “ «"] = sum(map(text.count, _DOUBLE))
    return found


def mixture(found: Mapping[str, int]) -> list[str]:
    """What a text has two kinds of, so often that a model would learn to mix them: `' (62 %) and ’ (38 %)`."""
    told = []
    for kinds in (("'", "’"), ('"', "„ “ «")):
        counts = [found.get(kind, 0) for kind in kinds]
        if min(counts) >= max(_MIXED_OFTEN, _MIXED_SHARE * sum(counts)):
            shares = [f"{kind} ({100 * count / sum(counts):.0f} %)" for kind, count in zip(kinds, counts, strict=True)]
            told.append(" and ".join(shares))
    return told


def settled(text: str) -> str:
    """What of a text that grows is written as it will be: not the mark at its end, nor the space before one."""
    end = len(text)
    while end and (text[end - 1].isspace() or text[end - 1] in _MARKS):
        end -= 1
    return text[:end]


def spellings(text: str) -> list[str]:
    """All ways in which the marks of a text may be written: pairs of a language, or any of them alike."""
    found = [plain(text)]
    double_quotes = dict.fromkeys([*_QUOTES.values(), _ELSEWHERE, _SPACED])
    for mark, alike, pairs in (("'", _SINGLE, _SINGLE_QUOTES), ('"', _DOUBLE, double_quotes)):
        opening = re.compile(rf"(?<!\w){mark}")
        found += [
            opening.sub(pair.opening, one).replace(mark, pair.closing)
            for one in found
            if mark in one
            for pair in (*(Quotes(each, each) for each in alike), *pairs)
        ]
    return [*dict.fromkeys([text, *found])]


@dataclass(frozen=True)
class Style:
    """How the marks of a text are written: printed as its language does, or plain."""

    printed: bool
    language: str | None = None
    spared: tuple[str, ...] = ()
    """What stays as it is, wherever it stands."""
    begun: str = ""
    """What a text begins with: it stays as it is given here."""
    double: int = 0
    """How many double marks its source has (`double_marks`): if any, no quotation is in single ones."""

    def write(self, text: str) -> Edited:
        """The text in this style."""
        typed = edited(text, self._allowed(text, _plainly(text)))
        if self.double:
            double = _with_double(typed.text, self._places_spared(typed.text), in_parts=self.double % 2 == 1)
            typed = Edited(double, typed.places)
        edits = [*_in_print(typed.text, self._quotes, self._places_spared(typed.text))] if self.printed else []
        written = self._as_begun(typed.text, edits)
        return Edited(written.text, [written.places[place] for place in typed.places])

    def decided(self, text: str) -> int:
        """Whether single marks become double is seen where they end."""
        found = _SINGLE_MARK.search(text) if self.double else None
        return len(text) if found is None else found.start()

    def _as_begun(self, text: str, edits: Sequence[Edit]) -> Edited:
        """The edits made, but for what the text begins with, if it does."""
        begun = edited(self.begun, _plainly(self.begun))
        length = min(len(begun.text), len(text))
        if text[:length] != begun.text[:length]:
            length = 0
        # Of two places that became one, the later: the space of « belongs to it.
        given = {place: number for number, place in enumerate(begun.places)}
        behind = edited(text, [edit for edit in edits if edit.place >= length])
        shift = given[length] - length
        places = [given[place] if place < length else behind.places[place] + shift for place in range(len(text) + 1)]
        return Edited(self.begun[: given[length]] + behind.text[length:], places)

    @property
    def _quotes(self) -> Quotes:
        code = self.language or ""
        return _QUOTES.get(code) or _QUOTES.get(code.partition("_")[0], _ELSEWHERE)

    def _allowed(self, text: str, edits: Iterable[Edit]) -> Iterator[Edit]:
        spared = self._places_spared(text)
        return (edit for edit in edits if edit.place not in spared)

    def _places_spared(self, text: str) -> set[int]:
        return places_of(self.spared, text)


def _plainly(text: str) -> Iterator[Edit]:
    for match in _PRINTED_OR_ITS_SPACE.finditer(text):
        yield Edit(match.start(), _PLAINLY[match.lastgroup])


def _with_double(text: str, spared: Container[int], *, in_parts: bool) -> str:
    """The text with double quotation marks for single ones that belong together, but for those inside double ones.

    Of a quotation that has been cut into sentences, which are its parts, one may have but its begin or its end.
    """
    opening: list[int] = []
    closing: list[int] = []
    within = False
    for place in _outside_code(text):
        within ^= text[place] == '"'
        if within or text[place] != "'" or place in spared:
            continue
        if _OPENS_SINGLE.match(text, place):
            opening.append(place)
        elif _CLOSES_SINGLE.match(text, place):
            closing.append(place)
    double = set[int]()
    for begin, next_one in pairwise([*opening, len(text)]):
        ends = [place for place in closing if begin < place < next_one]
        sure = [place for place in ends if not _MAY_OWN.match(text, place)]
        # The first that nothing else can be; of those that may be apostrophes, the last.
        if chosen := sure[:1] or ([] if in_parts else ends[-1:]):
            double |= {begin, *chosen}
        elif in_parts:
            double.add(begin)
    before = [place for place in closing if in_parts and place < min(opening, default=len(text))]
    double |= {place for place in before[-1:] if not _MAY_OWN.match(text, place)}
    return "".join('"' if place in double else sign for place, sign in enumerate(text))


def _in_print(text: str, quotes: Quotes, spared: Container[int]) -> Iterator[Edit]:
    """What is printed in place of the plain marks: quotations that begin as such, their ends, and apostrophes.

    Of what stands behind a mark only the next character counts, so that a text may grow.
    """
    opened = {"'": False, '"': False}
    for place in _outside_code(text):
        mark, before, behind = text[place], text[place - 1 : place], text[place + 1 : place + 2]
        if place in spared:
            continue
        if mark == "'" and before.isalpha() and (behind.isalpha() or not opened[mark]):
            yield Edit(place, "’")
            continue
        opens = not opened[mark] if before and before in _MARKS else not before or before.isspace()
        opens |= bool(before) and before in _BEFORE_OPENING
        opens &= bool(behind) and not behind.isspace() and behind not in _NOT_OPENED_BEFORE
        # Single quotation marks stay plain, both of them: the second looks like an apostrophe.
        if mark == '"' and (opens or opened[mark]):
            yield Edit(place, quotes.opening if opens else quotes.closing)
        opened[mark] = opens


def _outside_code(text: str) -> Iterator[int]:
    """Where plain marks are, but for those between backticks, in tags, and in braces or calls that begin with one."""
    inside = dict.fromkeys("`<{(", False)
    for match in _MARK_OR_CODE.finditer(text):
        place, sign = match.start(), match[0]
        if sign == "`":
            inside["`"] = not inside["`"]
        elif sign in "<>":
            inside["<"] = _TAG_BEGINS.match(text, place) is not None
        elif sign in "{}":
            inside["{"] = sign == "{" and text[place + 1 : place + 2] in ("'", '"')
        elif sign == ")":
            inside["("] = False
        else:
            inside["("] |= _CALL_BEGINS.search(text[max(0, place - 2) : place]) is not None
            if not any(inside.values()):
                yield place
