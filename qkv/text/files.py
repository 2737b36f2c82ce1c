"""Reading text: corpora as streams of raw pairs, plain or compressed, and strict lines for everything else."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple

from qkv.errors import ConfigError, StorageError, TextError

_OPENERS: dict[str, Callable[[Path], io.BufferedIOBase]] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}

# UTF-32 comes first: its little-endian mark begins with that of UTF-16.
_FOREIGN_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

_BUFFER_BYTES = 1 << 20
_SKIPPED_BYTES = 1 << 20
_LONGEST_LINE = 1 << 24


Side = Literal["source", "target"]


class Fault(NamedTuple):
    """Why a pair is left out, and the side that is to blame, where one is."""

    rule: str
    side: Side | None


class RawPair(NamedTuple):
    """One line of a corpus as it stands in the file; `fault` tells what already makes it unusable.

    `further` is what stands behind the tab after the target, where there is one.
    """

    source: bytes
    target: bytes
    fault: Fault | None = None
    further: bytes | None = None


class PairFile:
    """One part of a corpus: two files of as many lines, or one file of tab-separated pairs."""

    def __init__(self, source: Path, target: Path | None) -> None:
        self.source = source
        self.target = target

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    def pairs(self, longest: int) -> Iterator[RawPair]:
        """The pairs in order; of a line of more than `longest` bytes nothing but the fault is kept."""
        if self.target is None:
            return _tabbed_pairs(self.source, longest)
        return _parallel_pairs(self.source, self.target, longest)


def pair_files(paths: Sequence[Path]) -> list[PairFile]:
    """The parts that a list of files names: each TSV by itself, the others in twos, source before target."""
    parts: list[PairFile] = []
    waiting: Path | None = None
    for path in paths:
        _require_file(path)
        if not path.is_file():
            raise ConfigError(f"{path} is not a regular file; it is read more than once, so save it to disk first")
        if path.name.lower().endswith((".tsv", ".tsv.gz", ".tsv.xz")):
            parts.append(PairFile(path, None))
        elif waiting is None:
            waiting = path
        else:
            parts.append(PairFile(waiting, path))
            waiting = None
    if waiting is not None:
        raise ConfigError(
            f"{waiting} has no partner; give files in twos, source then target, or pairs in a file named *.tsv"
        )
    return parts


def read_lines(path: Path, *, with_ends: bool = False) -> Iterator[str]:
    """The lines of a text file, by default without their ends; broken UTF-8 is an error that names the line."""
    # Not a generator: a missing file is told when it is named, not when it is first read.
    _require_file(path)
    return _opened_lines(path, with_ends=with_ends)


def _opened_lines(path: Path, *, with_ends: bool) -> Iterator[str]:
    with open_text(path) as stream:
        yield from decode_lines(stream, str(path), with_ends=with_ends)


def decode_lines(stream: IO[bytes], name: str, *, with_ends: bool = False) -> Iterator[str]:
    """The lines of an open file of bytes, such as standard input, called `name` in errors."""
    with _told(name):
        for number, (line, whole) in enumerate(_lines(stream, _LONGEST_LINE), start=1):
            if not whole:
                raise TextError(f"{name}, line {number}: longer than {_LONGEST_LINE:,} bytes; is it text?")
            if number == 1:
                line = _without_mark(line, name)
            try:
                yield (line if with_ends else line.removesuffix(b"\n").removesuffix(b"\r")).decode()
            except UnicodeDecodeError as error:
                raise TextError(f"{name}, line {number}: not UTF-8 at byte {error.start + 1}") from error


def open_text(path: Path) -> IO[bytes]:
    """The decompressed bytes of a file, whatever its ending says it is compressed with."""
    with _told(str(path)):
        opener = _OPENERS.get(path.suffix.lower())
        if opener is None:
            return path.open("rb", buffering=_BUFFER_BYTES)
        # The compressed readers' own readline is several times slower.
        return io.BufferedReader(opener(path), _BUFFER_BYTES)


def _tabbed_pairs(path: Path, longest: int) -> Iterator[RawPair]:
    with open_text(path) as stream, _told(str(path)):
        for line, whole in _marked_lines(stream, longest, path):
            source, tab, rest = line.partition(b"\t")
            target, second_tab, further = rest.partition(b"\t")
            rule = "too long" if not whole else None if tab else "missing column"
            yield RawPair(source, target, Fault(rule, None) if rule else None, further if second_tab else None)


def _parallel_pairs(source: Path, target: Path, longest: int) -> Iterator[RawPair]:
    with open_text(source) as source_stream, open_text(target) as target_stream:
        source_lines = _told_lines(source_stream, longest, source)
        target_lines = _told_lines(target_stream, longest, target)
        count = 0
        while True:
            one, other = next(source_lines, None), next(target_lines, None)
            if one is None or other is None:
                break
            count += 1
            whole = one[1] and other[1]
            yield RawPair(one[0], other[0], None if whole else Fault("too long", "target" if one[1] else "source"))
        source_count = count + (one is not None) + sum(1 for _ in source_lines)
        target_count = count + (other is not None) + sum(1 for _ in target_lines)
    if source_count != target_count:
        raise TextError(
            f"{source} has {source_count:,} lines and {target} has {target_count:,}; "
            "line n of one must be the translation of line n of the other"
        )


def _told_lines(stream: IO[bytes], longest: int, path: Path) -> Iterator[tuple[bytes, bool]]:
    with _told(str(path)):
        yield from _marked_lines(stream, longest, path)


def _marked_lines(stream: IO[bytes], longest: int, path: Path) -> Iterator[tuple[bytes, bool]]:
    for number, (line, whole) in enumerate(_lines(stream, longest)):
        if number == 0:
            _without_mark(line, str(path))
        yield line.removesuffix(b"\n"), whole


def _lines(stream: IO[bytes], longest: int) -> Iterator[tuple[bytes, bool]]:
    """Each line with its end, and whether it is whole; only a line feed ends one."""
    while line := stream.readline(longest + 1):
        whole = line.endswith(b"\n") or len(line) <= longest
        if not whole:
            while (rest := stream.readline(_SKIPPED_BYTES)) and not rest.endswith(b"\n"):
                pass
        yield line, whole


def _without_mark(line: bytes, name: str) -> bytes:
    for mark, encoding in _FOREIGN_MARKS.items():
        if line.startswith(mark):
            raise TextError(f"{name} is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t UTF-8 IN > OUT")
    return line.removeprefix(codecs.BOM_UTF8)


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise ConfigError(f"{path} is a directory; give a file of text")
    if not path.exists():
        raise ConfigError(f"no such file: {path}")


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Turns what goes wrong while reading into errors that name the file."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise TextError(f"{name} is damaged or not what its ending says: {error}") from error
    except OSError as error:
        raise StorageError(f"cannot read {name}: {error.strerror or error}") from error
