"""Glossaries that clients have left here, each its owner's alone."""

from __future__ import annotations

import csv
import secrets
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from qkv.serve.languages import Direction
from qkv.serve.limits import (
    LONGEST_NAME,
    MOST_ENTRIES,
    MOST_ENTRY_CHARACTERS,
    MOST_GLOSSARIES,
    MOST_KEPT_CHARACTERS,
    require_few,
    require_short_terms,
)
from qkv.serve.refusals import Refusal
from qkv.serve.state import State
from qkv.serve.telling import LOG
from qkv.text.cleaning import normalise


@dataclass(frozen=True)
class Kept:
    """A glossary as its owner named it."""

    number: str
    owner: str
    name: str
    direction: Direction
    entries: dict[str, str]
    created: datetime

    @cached_property
    def characters(self) -> int:
        """Of all its terms."""
        return sum(len(source) + len(target) for source, target in self.entries.items())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "created": self.created.isoformat()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Kept:
        return cls(
            **told | {"direction": Direction(*told["direction"]), "created": datetime.fromisoformat(told["created"])}
        )


class Glossaries:
    """All that are here."""

    def __init__(self, state: State) -> None:
        self._state = state
        # What is written to a disk is written by threads, while others are asked for.
        self._changing = threading.Lock()
        self._kept = {kept.number: kept for kept in _readable(state.glossaries())}

    def add(self, owner: str, name: str, direction: Direction, entries: dict[str, str]) -> Kept:
        require_few(name, LONGEST_NAME, "characters of a name", parameter="name")
        if not entries:
            raise Refusal("bad", "Bad request: the glossary has no entries", parameter="entries")
        require_few(entries, MOST_ENTRIES, "entries", parameter="entries")
        require_short_terms(entries, MOST_ENTRY_CHARACTERS, parameter="entries")
        kept = Kept(secrets.token_hex(16), owner, name, direction, entries, datetime.now(UTC))
        with self._changing:
            self._require_room_for(kept)
            self._kept[kept.number] = kept
        try:
            self._state.keep_glossary(kept.number, kept.as_json())
        except BaseException:
            self._forget(kept)
            raise
        return kept

    def get(self, owner: str, number: str) -> Kept:
        """The owner's; that there are others of other people is not told."""
        kept = self._kept.get(number)
        if kept is None or kept.owner != owner:
            raise Refusal("not_found", "Glossary not found", parameter="glossary_id")
        return kept

    def of(self, owner: str) -> list[Kept]:
        with self._changing:
            every = [*self._kept.values()]
        return [kept for kept in every if kept.owner == owner]

    def remove(self, owner: str, number: str) -> None:
        kept = self.get(owner, number)
        self._state.drop_glossary(kept.number)
        self._forget(kept)

    def _forget(self, kept: Kept) -> None:
        with self._changing:
            self._kept.pop(kept.number, None)

    def _require_room_for(self, kept: Kept) -> None:
        if len(self._kept) >= MOST_GLOSSARIES:
            raise Refusal("too_much", f"There are {MOST_GLOSSARIES} glossaries already; delete one.")
        if kept.characters + sum(one.characters for one in self._kept.values()) > MOST_KEPT_CHARACTERS:
            raise Refusal("too_much", f"Glossaries have {MOST_KEPT_CHARACTERS} characters at most; delete one.")


def _readable(written: list[Any]) -> Iterator[Kept]:
    """Those that are glossaries; the others are told of, and are no reason not to serve."""
    for one in written:
        try:
            yield Kept.from_json(one)
        except (KeyError, TypeError, ValueError) as error:
            LOG.error("a glossary that was kept cannot be read, and is left out: %r", error)


def read_entries(text: str, kind: str) -> dict[str, str]:
    """A source term and a target term a line; what may stand behind them says in which languages they are."""
    if kind not in _ROWS:
        raise Refusal("bad", "Value for 'entries_format' not supported.", parameter="entries_format")
    entries: dict[str, str] = {}
    for number, line in _ROWS[kind](text):
        terms = [normalise(term) for term in line[:2]]
        if not any(terms):
            continue
        if len(terms) < 2 or not all(terms):
            raise Refusal("bad", f"Bad request: line {number} of the entries is not two terms", parameter="entries")
        if terms[0] in entries:
            raise Refusal("bad", f"Bad request: {terms[0]!r} has two entries", parameter="entries")
        entries[terms[0]] = terms[1]
    return entries


def _tabbed(text: str) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in enumerate(text.splitlines(), start=1))


def _with_commas(text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines of CSV, in which a term that has a comma stands in quotation marks."""
    lines = csv.reader(text.splitlines(keepends=True), strict=True, skipinitialspace=True)
    try:
        yield from ((lines.line_num, line) for line in lines)
    except csv.Error as error:
        message = f"Bad request: line {lines.line_num} of the entries is not CSV: {error}"
        raise Refusal("bad", message, parameter="entries") from error


_ROWS = {"tsv": _tabbed, "csv": _with_commas}


def write_entries(entries: dict[str, str]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in entries.items())
