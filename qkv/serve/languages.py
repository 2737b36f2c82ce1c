"""Which languages a server has: their codes and names, and who translates between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qkv.serve.refusals import Refusal
from qkv.text.languages import NAMES, OWN_NAMES, RIGHT_TO_LEFT


class Direction(NamedTuple):
    """From which language into which, by the codes that clients are told: `pt-BR`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


class Language(NamedTuple):
    code: str
    name: str
    own_name: str
    right_to_left: bool


def language(code: str) -> Language:
    """What is known of a language; one that is not in the table is called by its code."""
    base, _, region = code.partition("-")
    names = NAMES.get(base, base), OWN_NAMES.get(base, base)
    name, own_name = (f"{one} ({region})" if region else one for one in names)
    return Language(code, name, own_name, base in RIGHT_TO_LEFT)


class Languages:
    """The directions of a server, by the codes that clients give: `EN-GB` is `en` where there is no `en-gb`.

    `pt` is `pt-BR`, and so is `pt-PT`, where there is no other.
    """

    def __init__(self, directions: Sequence[Direction]) -> None:
        self.targets: dict[str, list[str]] = {}
        """For each source the languages it can be translated to."""
        self.directions = {str(direction): direction for direction in directions}
        """By their names, such as `en-fr`."""
        for source, target in directions:
            self.targets.setdefault(source, []).append(target)
        codes = [code for direction in reversed(directions) for code in direction]
        bases = {code.partition("-")[0].lower(): code for code in codes}
        self._spellings = bases | {code.lower(): code for code in codes}

    @property
    def sources(self) -> list[str]:
        return [*self.targets]

    @property
    def all_targets(self) -> list[str]:
        return [*dict.fromkeys(target for some in self.targets.values() for target in some)]

    @property
    def all(self) -> list[str]:
        return [*dict.fromkeys([*self.sources, *self.all_targets])]

    def known(self, code: str) -> str | None:
        """The server's own spelling of a code; None where it has no such language."""
        wanted = code.lower().replace("_", "-")
        return self._spellings.get(wanted) or self._spellings.get(wanted.partition("-")[0])

    def direction(self, source: str, target: str) -> Direction:
        """The direction that two codes mean; from a language to itself, nothing is to be done."""
        found = Direction(self._one_of(self.all, source, "source"), self.target(target))
        if not self.reaches(*found):
            there = ", ".join(self.targets.get(found.source, [])) or "nothing"
            message = f"{target} is not supported as a translation of {source}; it can become: {there}"
            raise Refusal("language", message, parameter="target")
        return found

    def target(self, code: str) -> str:
        """The language to translate to that a code means."""
        return self._one_of(self.all_targets, code, "target")

    def _one_of(self, some: list[str], code: str, name: str) -> str:
        known = self.known(code)
        if known is None or known not in some:
            raise Refusal("language", f"{code} is not supported", parameter=name, supported=some)
        return known

    def reaches(self, source: str, target: str) -> bool:
        return source == target or target in self.targets.get(source, [])
