"""Following a mix: which pairs are drawn, and how the encoded ones are laid out, direction by direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.corpus import Corpus, CorpusWriter, Stretch
from qkv.data.mixing import write_mixed
from qkv.data.packing import scramble
from qkv.prepare.clean import FATES, CleanCorpus
from qkv.prepare.directory import text_files
from qkv.prepare.mix import Ingredient, Mix
from qkv.text.languages import Direction
from qkv.text.subwords import Tokenizer

Numbers = npt.NDArray[np.int64]

_TRAINING = FATES.index("training")
_WHOLE = 2.0**64
_AT_ONCE = 1 << 20


def draw(corpus: CleanCorpus, mix: Mix) -> None:
    """Leaves out, by a hash of the pair, what repetitions of less than 1 are too few for."""
    shares = np.array([min(1.0, row.repetitions) for row in mix.rows])
    if (shares == 1).all():
        return
    for rows, hashes, fates, lines in corpus.with_lines():
        share = shares[rows_of(lines, corpus, mix)]
        chance = scramble(hashes[:, 0] + scramble(hashes[:, 1])) / _WHOLE
        corpus.mark(np.flatnonzero((fates == _TRAINING) & (chance >= share)) + rows.start, "not drawn")


def told(corpus: CleanCorpus, mix: Mix, encoded: Corpus, learned: Corpus, *, cuts: int) -> list[dict[str, Any]]:
    """What each row of a mix has given, for a report and a model's card.

    Pairs that were encoded are those that fit a row, each cut in so many ways; what is learned has them as often and in
    as many directions as the mix asks for.
    """
    read = _by_row((lines for _, _, _, lines in corpus.with_lines()), corpus, mix)
    used = _by_row(_chunks(encoded.lines), corpus, mix) // cuts
    examples = _by_row(_chunks(learned.lines), corpus, mix)
    return [
        {
            "files": [str(file) for file in row.files],
            "clean_pairs": int(read[number]),
            "training_pairs": int(used[number]),
            "examples": int(examples[number]),
            "directions": [str(direction) for direction in row.directions],
            "repetitions": row.repetitions,
            "domain": row.domain,
            "attribution": row.attribution,
            "terms": row.terms,
        }
        for number, row in enumerate(mix.rows)
    ]


@dataclass(frozen=True)
class Mixing:
    """Corpora of pairs as they were encoded, and where they go as they are learned."""

    encoded: Path
    output: Path
    mix: Mix
    tokenizer: Tokenizer

    def write(self, name: str, mix: Mix, corpus: CleanCorpus, *, repeat: bool) -> dict[str, int]:
        """Lays one corpus out by the rows of a mix; tells how much was written."""
        base = Corpus.open(self.encoded, name)
        stretches = list(self._stretches(base, rows_of(base.lines, corpus, mix), mix, repeat=repeat))
        with CorpusWriter(self.output, name, vocabulary=self.tokenizer.size) as writer:
            write_mixed(base, stretches, writer)
        return writer.counts

    def write_texts(self, name: str) -> None:
        """The texts of a corpus that was laid out, in the same order."""
        sides = [path.read_bytes().splitlines(True) for path in text_files(self.encoded, name)]
        written: tuple[list[bytes], list[bytes]] = [], []
        for stretch in Corpus.open(self.output, name).stretches:
            for side, lines in zip(sides[::-1] if stretch.turned else sides, written, strict=True):
                lines += [side[pair] for pair in stretch.chosen()]
        for path, lines in zip(text_files(self.output, name), written, strict=True):
            path.write_bytes(b"".join(lines))

    def _stretches(self, base: Corpus, row_of: Numbers, mix: Mix, *, repeat: bool) -> Iterator[Stretch]:
        # A corpus is cut in several ways one after the other: its lines begin again where the next way begins.
        begins = np.flatnonzero(np.concatenate([[True], (np.diff(row_of) != 0) | (np.diff(base.lines) < 0)]))
        for first, end in zip(begins.tolist(), [*begins[1:].tolist(), len(base)], strict=True):
            row, count = mix.rows[row_of[first]], end - first
            for direction in row.directions or (None,):
                for pairs in _portions(count, row.repetitions if repeat else 1.0):
                    yield Stretch(
                        direction=str(direction or ""),
                        first=first,
                        of=count,
                        pairs=pairs,
                        turned=direction is not None and direction != row.pair,
                        tags=tuple(self._tags(row, direction)),
                    )

    def _tags(self, row: Ingredient, direction: Direction | None) -> Iterator[int]:
        if direction is not None and self.mix.is_tagged:
            yield self.tokenizer.tag(direction.target)
        if row.domain is not None:
            yield self.tokenizer.domain(row.domain)


def _portions(count: int, repetitions: float) -> list[int]:
    """How many of so many pairs are taken, time after time; what is less than once was drawn before."""
    whole, rest = divmod(max(1.0, repetitions), 1)
    return [count] * int(whole) + [part for part in [round(count * rest)] if part]


def _by_row(some: Iterable[Numbers], corpus: CleanCorpus, mix: Mix) -> Numbers:
    """How many of these lines are of each row of a mix."""
    counts = np.zeros(len(mix.rows), np.int64)
    for lines in some:
        counts += np.bincount(rows_of(lines, corpus, mix), minlength=len(counts))
    return counts


def _chunks(lines: Numbers) -> Iterator[Numbers]:
    return (lines[first : first + _AT_ONCE] for first in range(0, len(lines), _AT_ONCE))


def rows_of(lines: Numbers, corpus: CleanCorpus, mix: Mix) -> Numbers:
    """The row of a mix that each line is of."""
    first_lines = [part.first_line for part in corpus.tally.places.parts]
    counts = np.cumsum([0, *(len(row.parts()) for row in mix.rows[:-1])])
    return np.searchsorted(np.array(first_lines)[counts], lines, side="right") - 1
