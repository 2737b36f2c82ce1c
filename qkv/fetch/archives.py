"""Members of archives, read where they lie: nothing is unpacked, so no name inside one can lead anywhere.

An archive comes from the web, and may be made to fill a disk: what it unpacks to is bounded by its own size.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from qkv.errors import TextError

_MOST_TIMES = 50
"""What may come out of a compressed byte: text gives four to ten, what is made to do harm up to a thousand."""
_ALWAYS = 1 << 20
_BEGINNING = 1 << 10
_TARS = (".tar", ".tgz", ".tar.gz")


class Member(NamedTuple):
    """A file in an archive, decompressed, and how large it is there: at least about so much will come out."""

    name: str
    size: int
    stream: IO[bytes]


def members(path: Path, wanted: Collection[str]) -> Iterator[Member]:
    """The wanted members of an archive in its own order; each must be read before the next is asked for.

    A file that is no archive is its own only member, by its own name.
    """
    missing = {*wanted}
    _refuse_page(path)
    with _told(path):
        for member in _tar_members(path, wanted) if path.name.endswith(_TARS) else _single(path):
            missing.discard(member.name)
            yield member
            if not missing:
                return
    raise TextError(f"{path} has no {', '.join(sorted(missing))}: it is not laid out as it was")


def _tar_members(path: Path, wanted: Collection[str]) -> Iterator[Member]:
    with path.open("rb") as file:
        stream = file if path.name.endswith(".tar") else _unpacked(file, path.stat().st_size, path)
        # A stream, not a file: nothing is looked for behind the member that is wanted last.
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                if name not in wanted:
                    continue
                inside = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
                if inside is None:
                    raise TextError(f"{name} in {path} is no plain file; somebody has changed the archive")
                with inside:
                    packed = name.endswith(".gz")
                    yield Member(name, entry.size, _unpacked(inside, entry.size, path) if packed else inside)


def _single(path: Path) -> Iterator[Member]:
    size = path.stat().st_size
    with path.open("rb") as file:
        yield Member(path.name, size, _unpacked(file, size, path) if path.suffix == ".gz" else file)


def _unpacked(packed: IO[bytes], size: int, path: Path) -> IO[bytes]:
    return io.BufferedReader(_Bounded(gzip.GzipFile(fileobj=packed), _ALWAYS + _MOST_TIMES * size, path), 1 << 18)


class _Bounded(io.RawIOBase):
    """A stream that may not become longer than this."""

    def __init__(self, stream: gzip.GzipFile, most: int, path: Path) -> None:
        self._stream = stream
        self._left = most
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise TextError(f"{self._path} unpacks to more than {_MOST_TIMES} times its size; that is no text")
        return count


def _refuse_page(path: Path) -> None:
    """No corpus is a page of the web, but networks and servers send one in the place of a file."""
    with path.open("rb") as file:
        if file.read(_BEGINNING).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            raise TextError(
                f"{path} is a page of HTML and no corpus: look at what it says (sign in? moved?), remove it, and give "
                "the same command again, or put the right file there yourself"
            )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TextError(f"{path} is damaged: {error}; remove it and give the same command again") from error
