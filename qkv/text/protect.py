"""What a translation must have unchanged: placeholders, tags, addresses, paths, code, numbers, and a user's own terms.

Every pattern begins at a sign or at the beginning of a word and never walks the same text twice, so that no text takes
long.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Collection
from functools import cache
from typing import NamedTuple

from qkv.errors import ConfigError
from qkv.text.words import Span, Terms

TAG = (
    r"<!--[^-]*+(?:-[^-]++)*+-->"
    r"|<[!?][A-Za-z][^<>]*+>"
    r"""|</?+[A-Za-z](?:"[^"<]*+"|'[^'<]*+'|[^<>"'])*+>"""
    r"|</?+\d{1,4}+\s?/?>"
)
"""A tag of XML or HTML, one with a number such as `<0>` or `</0>`, a declaration or a comment."""

# In scripts without spaces, text goes on directly behind an address.
_NO_ADDRESS = r"\s<>\"`{}|\\^“”«»\u3000-\u30ff\u3400-\u9fff\uff00-\uffef"
_BEHIND_ADDRESS = ".,;:!?'’)]*_"

KINDS = {
    "code": r"``[^`\n]++``|`[^`\n]++`",
    "tag": TAG,
    "entity": r"&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});",
    "url": rf"(?<![A-Za-z0-9_])(?:(?:https?|ftp|file)://|mailto:|www\.)[^{_NO_ADDRESS}]++",
    "e-mail": r"(?<![A-Za-z0-9_.%+-])[A-Za-z0-9_.%+-]{1,64}+@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z][A-Za-z0-9-]{1,62}",
    "placeholder": (
        r"\{\{[^{}\n]{1,80}+\}\}|\$\{[^{}\n]{1,80}+\}|\{[\w.,:!<>^+\[\]-]{0,80}+\}"
        r"|(?<!\w)__\w{1,80}?__(?!\w)"
        # As in printf, but for a space among the flags: «50 % des» is none.
        r"|%(?:\(\w{1,80}+\)|\d{1,2}\$)?[-+\#0]{0,4}(?:\d{1,3}|\*)?(?:\.(?:\d{1,3}|\*))?(?:hh|ll|[hlLqjzt])?[a-zA-Z@](?!\w)"
        r"|%%"
    ),
    "path": (
        r"(?<![\w/.~:-])(?:~|\.{1,2})(?:/[\w.@+~-]++)++/?"
        r"|(?<![\w/.~:-])(?:/[\w.@+~-]++){2,}+/?"
        r"|(?<![\w/.@-])(?:[\w.-]{1,64}+/){1,16}+[\w-]{1,64}(?:\.[\w-]{1,16}){0,3}?\.[A-Za-z]\w{0,7}(?![\w/])"
        r"|(?<!\w)[A-Za-z]:\\[\w.\\~$-]*+"
        r"|(?<![\w\\])\\\\[\w.-]++(?:\\[\w.$-]++)++"
    ),
    # Where a number with a letter behind it is none, its groups are none either.
    "number": r"(?<![\w.,])(?<!\d['’\u00a0\u202f])[+\-−]?\d++(?:[.,'’\u00a0\u202f]\d++)*+(?!\w)",
}
"""Each kind and how it looks; where two begin at the same place, the first one counts."""

SIGNS = {
    "code": "`",
    "tag": "<",
    "entity": "&",
    "url": r"://|mailto:|www\.",
    "e-mail": "@",
    "placeholder": r"[{%]|__",
    "path": r"[/\\]",
    "number": r"\d",
}
"""What everything of a kind has somewhere: a text without it has nothing of that kind."""

TERM = "term"
"""The kind of what a user's own list names."""

# A language has its own way to write numbers, so they are kept only where somebody asks for it.
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind != "number")


class Kept(NamedTuple):
    """A part of a text that must come out once, unchanged; one that stands twice comes out twice."""

    span: Span
    kind: str
    text: str


def find(text: str, *, kinds: Collection[str] = DEFAULT_KINDS, terms: Terms | None = None) -> list[Kept]:
    """What must be kept of a normalised text, from left to right; a term inside another kind is a part of that."""
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"there is nothing to keep called {unknown[0]!r}; there is: {', '.join(KINDS)}")
    ordered = tuple(kind for kind in KINDS if kind in kinds)
    kept = []
    if ordered:
        pattern = _pattern(ordered)
        for match in pattern.finditer(text):
            assert match.lastindex is not None, "every kind is a group"
            kind = ordered[match.lastindex - 1]
            visible = _TRIMMED.get(kind, str)(match[0])
            # What is left of "www.)" is nothing that anybody would find again.
            if visible == match[0] or pattern.fullmatch(visible):
                kept.append(Kept(Span(match.start(), match.start() + len(visible)), kind, visible))
    if terms is not None:
        starts = [one.span.start for one in kept]
        kept += [
            Kept(span, TERM, text[span.start : span.end])
            for span, _ in terms.find(text)
            # The last that begins before the term ends is the only one that can reach into it.
            if not (place := bisect.bisect_left(starts, span.end)) or kept[place - 1].span.end <= span.start
        ]
    return sorted(kept)


@cache
def _pattern(kinds: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"({KINDS[kind]})" for kind in kinds))


def _without_punctuation(address: str) -> str:
    """An address without what the sentence around it put behind it; a bracket that it opened itself stays."""
    end = len(address)
    unopened = address.count(")") - address.count("(")
    while end and address[end - 1] in _BEHIND_ADDRESS:
        if address[end - 1] == ")":
            if unopened <= 0:
                break
            unopened -= 1
        end -= 1
    return address[:end]


_TRIMMED: dict[str, Callable[[str], str]] = {"url": _without_punctuation, "path": lambda path: path.rstrip(".")}
