"""A translation as it grows."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from qkv.text.growing import GrowingText
from qkv.translate.asked import Asked
from qkv.translate.looking import Sought
from qkv.translate.options import Controls
from qkv.translate.searcher import Searcher
from qkv.translate.translation import NOTHING, Translation


class Stream:
    """The parts of a translation as they come: `for part in translator.stream(text): print(part, end="")`."""

    def __init__(self, parts: Generator[str, None, Translation]) -> None:
        self._parts = parts
        self.translation: Translation | None = None
        """All of it, once the last part has come."""

    def __iter__(self) -> Iterator[str]:
        self.translation = yield from self._parts


def growing(searcher: Searcher, asked: Asked, controls: Controls) -> Generator[str, None, Translation]:
    """The parts of what a greedy search finds, and then all of it."""
    if not asked.source:
        return NOTHING
    text = GrowingText(searcher.wording.tokenizer, asked.style)
    beam, tokens = searcher.grow(asked, controls)
    for token in tokens:
        if more := text.add(token):
            yield more
    ((best,),) = beam.best()
    found = searcher.told(asked, best, sought=Sought(controls, 1))
    if rest := found.text[len(text.text) :]:
        yield rest
    return found
