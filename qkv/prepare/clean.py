"""The first step: lines are read here, cleaned by the workers, and kept on disk with a hash of each side."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkv.config import DataConfig
from qkv.prepare.report import LineLog, Part, Tally
from qkv.prepare.workers import Workers
from qkv.progress import Progress
from qkv.text.cleaning import PAIR_RULES, Repair, clean
from qkv.text.files import Fault, PairFile, RawPair, Side
from qkv.text.typography import marks

_CHUNK_PAIRS = 4096
_CHUNK_BYTES = 1 << 20
_LONGEST_LINE = 1 << 20
_BLOCK_ROWS = 1 << 16

FATES = ("training", "held out", "duplicate", "stands in a test set", "target held out", "not drawn", "wrong language")
"""What becomes of a clean pair; all but the first two are rules that leave it out."""

Fates = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]


class CleanText(NamedTuple):
    """Some clean pairs, `source<TAB>target` and a line feed each, and the lines they came from."""

    text: bytes
    lines: npt.NDArray[np.int64]
    fates: Fates

    def where(self, chosen: npt.NDArray[np.bool_]) -> CleanText:
        kept = self.text.splitlines(keepends=True)
        text = b"".join(line for line, keep in zip(kept, chosen, strict=True) if keep)
        return CleanText(text, self.lines[chosen], self.fates[chosen])


@dataclass(frozen=True)
class CleanCorpus:
    """Clean pairs on disk: their text, and for each its line, a hash of each side and its fate."""

    stem: Path
    tally: Tally

    def __len__(self) -> int:
        return self.file("lines").stat().st_size // 8

    def blocks(self) -> Iterator[tuple[slice, Hashes, Fates]]:
        """The hashes of many pairs at a time, and their fates, which may be written to."""
        fates = self._fates()
        # Read, not mapped: what was read is given back, so that memory does not grow with the corpus.
        with self.file("hashes").open("rb") as hashes:
            for first in range(0, len(self), _BLOCK_ROWS):
                rows = slice(first, min(first + _BLOCK_ROWS, len(self)))
                block = np.frombuffer(hashes.read(16 * (rows.stop - rows.start)), np.uint64)
                yield rows, block.reshape(-1, 2), fates[rows]

    def mark(self, rows: npt.NDArray[np.integer[Any]], fate: str) -> None:
        """Decides the fate of some pairs."""
        self._fates()[rows] = FATES.index(fate)

    def texts(self) -> Iterator[CleanText]:
        """All pairs in order, some thousand at a time."""
        with (
            self.file("tsv").open("rb") as text,
            self.file("lines").open("rb") as lines,
            self.file("fates").open("rb") as fates,
        ):
            while pairs := list(_take(text)):
                yield CleanText(
                    b"".join(pairs),
                    np.frombuffer(lines.read(8 * len(pairs)), np.int64),
                    np.frombuffer(fates.read(len(pairs)), np.uint8),
                )

    def count(self, fate: str) -> int:
        return sum(int((fates == FATES.index(fate)).sum()) for _, _, fates in self.blocks())

    def with_lines(self) -> Iterator[tuple[slice, Hashes, Fates, npt.NDArray[np.int64]]]:
        """The blocks, with the line of each pair."""
        with self.file("lines").open("rb") as file:
            for rows, hashes, fates in self.blocks():
                yield rows, hashes, fates, np.frombuffer(file.read(8 * len(fates)), np.int64)

    def log_fates(self, log: LineLog) -> None:
        """Tells the log of all pairs whose fate is to be left out."""
        for _, _, fates, lines in self.with_lines():
            for row in np.flatnonzero(fates > FATES.index("held out")):
                log.drop(self.tally, int(lines[row]), Fault(FATES[fates[row]], None))

    def file(self, part: str) -> Path:
        return self.stem.with_name(f"{self.stem.name}.{part}")

    def _fates(self) -> Fates:
        count = len(self)
        return np.memmap(self.file("fates"), np.uint8, "r+", shape=(count,)) if count else np.zeros(0, np.uint8)


def clean_corpus(
    parts: Sequence[PairFile],
    stem: Path,
    data: DataConfig,
    rules: Sequence[str],
    workers: Workers,
    log: LineLog,
) -> CleanCorpus:
    """Cleans the parts of a corpus into files that begin with `stem`; `rules` are names of rules of a pair."""
    tally = Tally()
    corpus = CleanCorpus(stem, tally)
    function = partial(_clean_chunk, data=data, rules=tuple(rules))
    longest = max(_LONGEST_LINE, 4 * data.max_bytes)
    with Progress("cleaning", total=None, unit="pairs") as progress, _Output(corpus) as output:
        for result in workers.map(function, _chunks(parts, longest, tally)):
            output.write(result)
            tally.read += result.read
            for side, found in result.marks.items():
                tally.marks[side].update(found)
            for line, fault in result.dropped:
                log.drop(tally, line, fault)
            for line, repair in result.mended:
                log.mend(tally, line, repair)
            progress.advance(result.read)
    return corpus


def text_hashes(texts: Sequence[str]) -> Hashes:
    """A hash of each text, the same everywhere."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


class _Chunk(NamedTuple):
    first_line: int
    pairs: list[RawPair]


class _Cleaned(NamedTuple):
    read: int
    text: bytes
    lines: npt.NDArray[np.int64]
    hashes: Hashes
    dropped: list[tuple[int, Fault]]
    mended: list[tuple[int, Repair]]
    marks: dict[Side, Counter[str]]


def _chunks(parts: Sequence[PairFile], longest: int, tally: Tally) -> Iterator[_Chunk]:
    line = 1
    for part in parts:
        tally.places.parts.append(Part([str(file) for file in part.files], line))
        pairs: list[RawPair] = []
        size = 0
        for pair in part.pairs(longest):
            pairs.append(pair)
            size += len(pair.source) + len(pair.target) + len(pair.further or b"")
            if len(pairs) >= _CHUNK_PAIRS or size >= _CHUNK_BYTES:
                yield _Chunk(line, pairs)
                line += len(pairs)
                pairs, size = [], 0
        if pairs:
            yield _Chunk(line, pairs)
            line += len(pairs)


def _clean_chunk(chunk: _Chunk, *, data: DataConfig, rules: tuple[str, ...]) -> _Cleaned:
    table = {name: PAIR_RULES[name] for name in rules}
    dropped: list[tuple[int, Fault]] = []
    mended: list[tuple[int, Repair]] = []
    kept: list[str] = []
    lines: list[int] = []
    for line, raw in enumerate(chunk.pairs, start=chunk.first_line):
        result = clean(raw, data, table)
        if isinstance(result, Fault):
            dropped.append((line, result))
        else:
            kept += result.pair
            lines.append(line)
            mended += [(line, repair) for repair in result.repairs]
    text = "".join(f"{source}\t{target}\n" for source, target in zip(kept[::2], kept[1::2], strict=True))
    hashes = text_hashes(kept).reshape(-1, 2)
    found: dict[Side, Counter[str]] = {"source": marks("\n".join(kept[::2])), "target": marks("\n".join(kept[1::2]))}
    return _Cleaned(len(chunk.pairs), text.encode(), np.array(lines, np.int64), hashes, dropped, mended, found)


class _Output:
    """The files of a clean corpus while they are written."""

    def __init__(self, corpus: CleanCorpus) -> None:
        self._paths = {part: corpus.file(part) for part in ("tsv", "lines", "hashes", "fates")}
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> _Output:
        self._files = {part: path.open("wb") for part, path in self._paths.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def write(self, result: _Cleaned) -> None:
        self._files["tsv"].write(result.text)
        self._files["lines"].write(result.lines.tobytes())
        self._files["hashes"].write(result.hashes.tobytes())
        self._files["fates"].write(bytes(len(result.lines)))


def _take(text: IO[bytes]) -> Iterator[bytes]:
    size = 0
    for _ in range(_CHUNK_PAIRS):
        line = text.readline()
        if not line:
            return
        yield line
        size += len(line)
        if size >= _CHUNK_BYTES:
            return
