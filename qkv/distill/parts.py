"""A teacher's translations on disk, in parts: a part that is there is whole, and is not translated again.

A part is a compressed file of JSON lines, named after its first sentence: a head that tells what was asked for, then a
translation a line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qkv.errors import ConfigError, TextError
from qkv.progress import warn
from qkv.storage import explained, write_atomically

_NAME = "part-{:010}.jsonl.gz"
_QUICKLY = 3
"""How hard to compress: translations are read twice and thrown away."""


class Taught(NamedTuple):
    """What the teacher says a source means."""

    text: str
    complete: bool
    """False where the length limit cut it off."""


class Parts:
    """The translations of sentences 0 to `sentences`, as far as they are there."""

    def __init__(self, directory: Path, fingerprint: str, sentences: int) -> None:
        self._directory = directory
        self._fingerprint = fingerprint
        self._sentences = sentences

    def missing(self, size: int) -> list[range]:
        """What is still to be translated, in parts of this size at most; parts that are damaged go."""
        gaps = []
        position = 0
        for there in [*self._sound(), range(self._sentences, self._sentences)]:
            gaps += [range(first, min(first + size, there.start)) for first in range(position, there.start, size)]
            position = there.stop
        return gaps

    def write(self, first: int, taught: Sequence[Taught]) -> None:
        """Keeps the translations of the sentences from `first` on."""
        head = {"asked": self._fingerprint, "first": first, "sentences": len(taught)}
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [head, *taught])
        with explained(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
        # Without the time, so that the same translations give the same bytes.
        write_atomically(self._path(first), gzip.compress(lines.encode(), _QUICKLY, mtime=0))

    def read(self) -> Iterator[tuple[range, list[Taught]]]:
        """All parts in order; none may be missing."""
        position = 0
        while position < self._sentences:
            part = self._read(self._path(position))
            yield range(position, position + len(part)), part
            position += len(part)

    def _path(self, first: int) -> Path:
        return self._directory / _NAME.format(first)

    def _sound(self) -> Iterator[range]:
        found = self._directory.glob(_NAME.format(0).replace("0" * 10, "[0-9]" * 10))
        for path in sorted(found):
            try:
                part = self._read(path)
            except TextError as error:
                warn(f"{error}; it is translated again")
                path.unlink()
                continue
            first = int(path.name[5:15])
            yield range(first, first + len(part))

    def _read(self, path: Path) -> list[Taught]:
        try:
            # Only a line feed ends a line: text may hold what Python takes for one too.
            first, *lines = gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")
            head = json.loads(first)
            asked, sentences = head["asked"], head["sentences"]
            part = [Taught(str(text), bool(complete)) for text, complete in map(json.loads, lines)]
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
            raise TextError(f"{path} is damaged") from error
        if sentences != len(part):
            raise TextError(f"{path} is damaged")
        if asked != self._fingerprint:
            raise ConfigError(
                f"{self._directory} holds translations of other data, or of another teacher or search; "
                "remove it or choose another --output"
            )
        return part
