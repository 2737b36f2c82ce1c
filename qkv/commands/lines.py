"""Lines in and lines out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from qkv.errors import ConfigError, StorageError, TextError
from qkv.storage import replacing


def helpings(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """The lines, so many at a time; where reading fails, those before come first."""
    helping: list[str] = []
    try:
        for line in lines:
            helping.append(line)
            if len(helping) == size:
                yield helping
                helping = []
    except TextError:
        yield helping
        raise
    yield helping


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """The file, which changes only when all is written, or standard output; what is refused is said in a line."""
    if path is None and sys.stdout is None:
        raise ConfigError("standard output is closed; give --output, a file")
    try:
        if path is None:
            # Translations are UTF-8 whatever the terminal's locale says.
            with open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False) as output:
                yield output
        elif path.exists() and not path.is_file():
            # A device or a pipe cannot be replaced.
            with path.open("w", encoding="utf-8") as output:
                yield output
        else:
            with replacing(path) as output:
                yield output
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {path or 'the output'}: {error.strerror}") from error
