"""How a translation is looked into, when somebody asks to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qkv.inspecting.inspection import Inspection, Searched
from qkv.inspecting.opened import Came, Opened
from qkv.search.record import Record
from qkv.translate.asked import Asked
from qkv.translate.options import Controls

if TYPE_CHECKING:
    from qkv.translate.searcher import Searcher


class Sought(NamedTuple):
    """How a beam was asked for a translation."""

    controls: Controls
    keep: int


class Lookable(NamedTuple):
    """What a translator tells of itself to who looks inside."""

    model: Opened
    source_language: str | None
    target_language: str | None


@dataclass(frozen=True)
class Look:
    """A translation that was found, and all that it takes to find it again."""

    searcher: Searcher
    lookable: Lookable
    asked: Asked
    ids: tuple[int, ...]
    complete: bool
    sought: Sought | None
    """None where no beam found it: it was drawn, or given."""
    note: str | None = None
    """What whoever looks should know."""

    def noted(self, note: str) -> Look:
        """The same, with something that whoever looks should know."""
        return dataclasses.replace(self, note=note)

    def through(self, model: Opened) -> Look:
        """The same translation, as another model of the same form sees it."""
        return dataclasses.replace(self, lookable=self.lookable._replace(model=model))

    def __call__(self) -> Inspection:
        wording = self.searcher.wording
        given = dataclasses.replace(self.asked, target=self.ids)
        (read,) = self.searcher.read([given], looks=True)
        written = [*self.ids, *[wording.tokenizer.end] * self.complete]
        return self.lookable.model.inspect(
            Came(
                self.asked.source,
                written,
                wording.right_to_left,
                (self.lookable.source_language, self.lookable.target_language),
                self.searcher.told(given, read, aligned=True).alignment,
                self._searched(written),
                self.note,
            )
        )

    def _searched(self, written: list[int]) -> Searched | None:
        """The same search once more, while somebody writes down what it considers."""
        if self.sought is None:
            return None
        record = Record()
        searcher = dataclasses.replace(self.searcher, record=record, abandoned=None)
        searcher.look([self.asked], self.sought.controls, keep=self.sought.keep)
        nodes = record.nodes(written)
        piece = self.searcher.wording.tokenizer.piece
        texts = [None if node.token is None else piece(node.token) for node in nodes]
        return Searched(record.width, self.searcher.search.length_penalty, nodes, texts)
