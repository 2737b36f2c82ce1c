"""Lines in and lines out."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from qkv.errors import ConfigError, TextError
from qkv.storage import refusal, replacing
from qkv.text.files import decode_lines, read_lines

if TYPE_CHECKING:
    from qkv.translate import Translation

_DIGITS = 6


def input_lines(options: argparse.Namespace, *, with_ends: bool = False) -> Iterator[str]:
    """The lines of --input, or of standard input, by default without their ends."""
    if options.input is None and sys.stdin is None:
        raise ConfigError("standard input is closed; give --input, a text file")
    if options.input and options.output and options.output.exists() and options.output.samefile(options.input):
        raise ConfigError(f"--input and --output are both {options.input}, which would be lost")
    if options.input:
        return read_lines(options.input, with_ends=with_ends)
    return decode_lines(sys.stdin.buffer, input_name(options), with_ends=with_ends)


def input_name(options: argparse.Namespace) -> str:
    return str(options.input or "standard input")


def one_line(text: str) -> str:
    """A byte that breaks lines would break the promise of one line for one line."""
    return text.replace("\n", " ").replace("\r", " ")


def values(translation: Translation) -> dict[str, Any]:
    """A translation as JSON tells of it."""
    return {
        "text": translation.text,
        "score": round(translation.score, _DIGITS),
        "log_probability": round(translation.log_probability, _DIGITS),
        "complete": translation.complete,
        "tokens": [*translation.tokens],
        "token_scores": [round(score, _DIGITS) for score in translation.token_scores],
    }


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
        raise refusal(path or "the output", error) from error
