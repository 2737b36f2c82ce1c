"""Glossaries that clients have left here, each its owner's alone; they are kept as long as the server runs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from qkv.serve.languages import Direction
from qkv.serve.refusals import Refusal
from qkv.text.cleaning import normalise

_MOST = 1000
_MOST_ENTRIES = 10_000


@dataclass(frozen=True)
class Kept:
    """A glossary as its owner named it."""

    number: str
    owner: str
    name: str
    direction: Direction
    entries: dict[str, str]
    created: datetime


class Glossaries:
    """All that are here."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def add(self, owner: str, name: str, direction: Direction, entries: dict[str, str]) -> Kept:
        if len(self._kept) >= _MOST:
            raise Refusal("too_much", f"There are {_MOST} glossaries already; delete one.")
        if not entries:
            raise Refusal("bad", "Bad request: the glossary has no entries", parameter="entries")
        if len(entries) > _MOST_ENTRIES:
            raise Refusal("too_much", f"A glossary has at most {_MOST_ENTRIES} entries.", parameter="entries")
        kept = Kept(secrets.token_hex(16), owner, name, direction, entries, datetime.now(UTC))
        self._kept[kept.number] = kept
        return kept

    def get(self, owner: str, number: str) -> Kept:
        """The owner's; that there are others of other people is not told."""
        kept = self._kept.get(number)
        if kept is None or kept.owner != owner:
            raise Refusal("not_found", "Glossary not found", parameter="glossary_id")
        return kept

    def of(self, owner: str) -> list[Kept]:
        return [kept for kept in self._kept.values() if kept.owner == owner]

    def remove(self, owner: str, number: str) -> None:
        del self._kept[self.get(owner, number).number]


def read_entries(text: str, separator: str) -> dict[str, str]:
    """Lines of a source term, a separator and a target term."""
    entries: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        terms = [normalise(term.strip().strip('"')) for term in line.split(separator)][:2]
        if len(terms) < 2 or not all(terms):
            raise Refusal("bad", f"Bad request: line {number} of the entries is not two terms", parameter="entries")
        if terms[0] in entries:
            raise Refusal("bad", f"Bad request: {terms[0]!r} has two entries", parameter="entries")
        entries[terms[0]] = terms[1]
    return entries


def write_entries(entries: dict[str, str]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in entries.items())
