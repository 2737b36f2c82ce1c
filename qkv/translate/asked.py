"""What is asked of a search, sentence by sentence, and which sentences go together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qkv.search.rules import Rule, together
from qkv.text.editing import Writing


@dataclass(frozen=True)
class Asked:
    """A source, its number, and what its translation has to keep to."""

    number: int
    source: list[int]
    rule: Rule | None = None
    stricter: Rule | None = None
    """The rule with the terms that the translation may have by itself; None where there are none."""
    target: tuple[int, ...] = ()
    """The translation, where it is given."""
    style: Writing | None = None
    """How its translation is written; None where that is as the model does."""
    text: str = ""
    """What the source says, where its translation is looked at for faults."""
    amounts: bool = False
    """Whether a number that became another is one."""

    def strictly(self) -> Asked:
        """The same, held to its terms too."""
        return dataclasses.replace(self, rule=self.stricter or self.rule, stricter=None)

    def held_to(self, rule: Rule) -> Asked:
        """The same, held to one rule more."""
        return dataclasses.replace(self, rule=together([*filter(None, [self.rule]), rule]))

    @property
    def size(self) -> int:
        """How many positions a row needs for it."""
        return max(len(self.source), len(self.target) + 1)

    @property
    def seed(self) -> int:
        """A number of the source's own, so that what is drawn for it does not depend on its neighbours."""
        return int.from_bytes(hashlib.sha256(repr(self.source).encode()).digest()[:8], "little")

    @property
    def wanted(self) -> set[int]:
        """Tokens that will be asked for, however unlikely."""
        return {*self.target, *(self.rule.vocabulary() if self.rule is not None else ())}


def batches(asked: Sequence[Asked], *, rows: int, positions: int) -> Iterator[list[Asked]]:
    """Those of like length together, each in so many rows, as many as there are positions for."""
    waiting = sorted(asked, key=lambda one: -one.size)
    while waiting:
        count = max(1, positions // (rows * waiting[0].size))
        yield waiting[:count]
        waiting = waiting[count:]
