"""The glossary: which terms a translation must have, and which it must not, because of what its source says.

A file of lines, source term and target terms, with a tab between the two and `|` between alternatives:

    # a comment
    hard disk   Festplatte|Festplattenlaufwerk     one of them must appear
    Acme Cloud  =                                  must appear as it is written in the source
    girl        Mädchen|!Mädel                     the first must appear, the second must not
    *           !Endverbraucher                    must not appear, whatever the source says
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from qkv.errors import TextError
from qkv.text.cleaning import normalise
from qkv.text.files import read_lines
from qkv.text.words import Terms, term_key

_COMMENT = "#"
_COPY = "="
_FORBIDDEN = "!"
_EVERYWHERE = "*"


class Demands(NamedTuple):
    """What the translation of one sentence is held to."""

    required: list[tuple[str, ...]]
    """Of each, one alternative must appear; a term that the source has twice is here twice."""
    forbidden: list[str]
    """None of these may appear."""


@dataclass(frozen=True)
class Entry:
    """A source term, what its translation may be, and what it may not; `=` stands for the source's own words."""

    source: str
    alternatives: tuple[str, ...]
    forbidden: tuple[str, ...]


class Glossary:
    """Entries, and quick answers which of them a sentence calls for: `Glossary.load(path).demands(sentence)`."""

    def __init__(self, entries: Iterable[Entry], *, always_forbidden: Iterable[str] = ()) -> None:
        self._entries = {term_key(entry.source): entry for entry in entries}
        self._terms = Terms.keyed({key: entry.source for key, entry in self._entries.items()})
        self._always_forbidden = tuple(always_forbidden)

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def load(cls, path: Path) -> Glossary:
        """The glossary in a file."""
        return cls.parse(read_lines(path), str(path))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str) -> Glossary:
        """The glossary in lines of text, which errors call `name`."""
        entries: dict[tuple[str, ...], Entry] = {}
        line_of: dict[tuple[str, ...], int] = {}
        always_forbidden: list[str] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.lstrip().startswith(_COMMENT):
                continue
            try:
                entry = _parsed(line)
                if entry.source == _EVERYWHERE:
                    always_forbidden += entry.forbidden
                    continue
                key = term_key(entry.source)
                if key in entries:
                    entry = _merged(entries[key], entry, line_of[key])
            except ValueError as error:
                raise TextError(f"{name}, line {number}: {error}") from error
            entries[key] = entry
            line_of.setdefault(key, number)
        return cls(entries.values(), always_forbidden=always_forbidden)

    def demands(self, sentence: str) -> Demands:
        """What the terms in a sentence ask of its translation; where they contradict, what is required wins."""
        required: list[tuple[str, ...]] = []
        forbidden = dict.fromkeys(self._always_forbidden)
        for (start, end), term in self._terms.find(sentence):
            entry = self._entries[term_key(term)]
            copied = normalise(sentence[start:end])
            alternatives = (copied if one == _COPY else one for one in entry.alternatives)
            if entry.alternatives:
                required.append(tuple(dict.fromkeys(alternatives)))
            forbidden.update(dict.fromkeys(entry.forbidden))
        return _agreeing(required, [*forbidden])


def _parsed(line: str) -> Entry:
    columns = line.split("\t")
    if len(columns) != 2:
        found = "no tab" if len(columns) == 1 else f"{len(columns)} columns"
        raise ValueError(f"{found}; write a source term, one tab, and its target terms with | between them")
    source, targets = normalise(columns[0]), [normalise(target) for target in columns[1].split("|")]
    if not source:
        raise ValueError(f"no source term before the tab; write {_EVERYWHERE} to forbid a term in every sentence")
    alternatives = [target for target in targets if not target.startswith(_FORBIDDEN)]
    forbidden = [normalise(target[len(_FORBIDDEN) :]) for target in targets if target.startswith(_FORBIDDEN)]
    if not all(alternatives) or not all(forbidden):
        raise ValueError(f"a target term of {source!r} is empty; write {_COPY} for one that stays as it is")
    if source == _EVERYWHERE and alternatives:
        raise ValueError(
            f"{_EVERYWHERE} only forbids, so a target term begins with {_FORBIDDEN}: {_FORBIDDEN}{alternatives[0]}"
        )
    return _consistent(Entry(source, tuple(alternatives), tuple(forbidden)))


def _merged(first: Entry, second: Entry, line: int) -> Entry:
    """What two lines say of one term; only one of them may say how it is translated."""
    if first.alternatives and second.alternatives:
        raise ValueError(
            f"{second.source!r} is translated in line {line} already; write alternatives in one line, with |"
        )
    alternatives = first.alternatives or second.alternatives
    return _consistent(Entry(first.source, alternatives, (*first.forbidden, *second.forbidden)))


def _consistent(entry: Entry) -> Entry:
    forbidden = Terms(entry.forbidden)
    if entry.alternatives and all(forbidden.find(one) for one in entry.alternatives):
        raise ValueError(f"{entry.source!r} requires {entry.alternatives[0]!r} and forbids it; take one of the two out")
    return entry


def _agreeing(required: list[tuple[str, ...]], forbidden: list[str]) -> Demands:
    """Demands that can be met: no alternative has a forbidden term in it, and none is left without alternatives."""
    if not (required and forbidden):
        return Demands(required, forbidden)
    terms = Terms(forbidden)
    clashing = {one: {term for _, term in terms.find(one)} for alternatives in required for one in alternatives}
    result: list[tuple[str, ...]] = []
    overruled: set[str] = set()
    for alternatives in required:
        allowed = tuple(one for one in alternatives if not clashing[one])
        result.append(allowed or alternatives)
        if not allowed:
            overruled.update(*(clashing[one] for one in alternatives))
    return Demands(result, [term for term in forbidden if term not in overruled])
