"""A translation as it grows."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from qkv.translate.translation import Translation


class Stream:
    """The parts of a translation as they come: `for part in translator.stream(text): print(part, end="")`."""

    def __init__(self, parts: Generator[str, None, Translation]) -> None:
        self._parts = parts
        self.translation: Translation | None = None
        """All of it, once the last part has come."""

    def __iter__(self) -> Iterator[str]:
        self.translation = yield from self._parts
