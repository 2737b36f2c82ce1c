"""Which heads of a model tell where its words came from, and where that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from qkv.errors import CheckpointError
from qkv.storage import write_atomically

_FILE = "alignment.json"

Head = tuple[int, int]
"""Of the decoder's attention to the source: its layer and its number there."""


class Looks(NamedTuple):
    """The heads whose mean aligns best, and when to ask them."""

    heads: list[Head]
    when_read: bool = False
    """Whether a word's own look is that of the step that reads it, and not of the one that writes it."""
    quality: float = 0.0
    """How well the subwords looked at belong to those written, on held-out pairs, from 0 to 1; 0 where not measured."""

    def save(self, directory: Path) -> None:
        write_atomically(directory / _FILE, (json.dumps(self._asdict()) + "\n").encode())

    @property
    def are_learned(self) -> bool:
        """Whether they were found by looking at pairs, and are not those that usually align."""
        return self.quality > 0

    @classmethod
    def load(cls, directory: Path, *, layers: int, heads: int) -> Looks | None:
        """What was saved for a decoder of so many layers and heads; None where nothing was."""
        path = directory / _FILE
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            chosen = [(int(layer), int(head)) for layer, head in found["heads"]]
            looks = cls(chosen, bool(found["when_read"]), float(found["quality"]))
            sound = chosen and all(0 <= layer < layers and 0 <= head < heads for layer, head in chosen)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged; remove it, or learn it again with qkv align --learn") from error
        if not sound:
            raise CheckpointError(f"{path} names heads that the model does not have; remove it")
        return looks
