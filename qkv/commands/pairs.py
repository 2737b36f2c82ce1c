"""Pairs in, a line for each out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from qkv.commands.lines import helpings, input_name, open_output
from qkv.errors import TextError
from qkv.progress import Progress, warn
from qkv.text.cleaning import Pair, normalise

if TYPE_CHECKING:
    from qkv.translate import Translation

LINES_AT_ONCE = 2000


class Read(Protocol):
    """Reads sources with their translations, and counts those that are done."""

    def __call__(
        self, sources: list[str], targets: list[str], *, progress: Callable[[int], None]
    ) -> list[Translation]: ...


def write_pairs(
    lines: Iterator[str],
    options: argparse.Namespace,
    read: Read,
    row: Callable[[int, Translation], str],
    gap: Callable[[int, str], str],
    *,
    doing: str,
) -> None:
    """Writes a row for each pair; for a line that is none a gap, so that the others keep their places.

    `doing` is the word for it without its ending: `scor`, `align`.
    """
    done = bad = 0
    with open_output(options.output) as output, Progress(f"{doing}ing", total=None, unit="lines") as progress:
        try:
            for lines_at_once in helpings(lines, LINES_AT_ONCE):
                pairs = [_pair(line) for line in lines_at_once]
                sound = [pair for pair in pairs if isinstance(pair, Pair)]
                found = iter(
                    read([pair.source for pair in sound], [pair.target for pair in sound], progress=progress.advance)
                )
                for number, pair in enumerate(pairs, start=done + 1):
                    if isinstance(pair, Pair):
                        output.write(row(number, next(found)))
                    else:
                        bad += 1
                        warn(f"{input_name(options)}, line {number}: {pair}; it is not {doing}ed")
                        output.write(gap(number, pair))
                output.flush()
                done += len(pairs)
        except TextError as error:
            before = "nothing is written" if options.output else f"the {done:,} lines before it are {doing}ed"
            raise TextError(f"{error}; {before}") from error
    if bad and bad == done:
        lines_there = "the one line" if bad == 1 else f"none of the {bad:,} lines"
        raise TextError(f"{lines_there} could {'not ' if bad == 1 else ''}be {doing}ed")
    if bad:
        raise TextError(f"{bad:,} of {done:,} lines are not {doing}ed; all others are")


def _pair(line: str) -> Pair | str:
    """A source and its translation, or what is wrong with the line."""
    source, tab, rest = line.partition("\t")
    target, more, _ = rest.partition("\t")
    pair = Pair(source, target)
    if not tab:
        return "no tab between a source and its translation"
    if more:
        return "more than a source and its translation, with one tab between them"
    if normalise(pair.target) and not normalise(source):
        return "a translation without a source"
    return pair
