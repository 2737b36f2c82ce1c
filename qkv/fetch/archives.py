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
from typing import IO, Any

from qkv.errors import TextError

_MOST_TIMES = 50
"""What may come out of a compressed byte: text gives four to ten, what is made to do harm up to a thousand."""
_ALWAYS = 1 << 20
_TARS = (".tar", ".tgz", ".tar.gz")


def members(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """The wanted members of an archive in its own order, decompressed; each must be read before the next is asked for.

    A file that is no archive is its own only member, by its own name.
    """
    missing = {*wanted}
    with _told(path):
        for name, stream in _tar_members(path) if path.name.endswith(_TARS) else _single(path):
            if name in missing:
                missing.remove(name)
                with stream() as opened:
                    yield name, opened
            if not missing:
                return
    raise TextError(f"{path} has no {', '.join(sorted(missing))}: it is not laid out as it was")


class _Opener:
    """A member that can be opened, where it is one that may be."""

    def __init__(self, path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._path = path
        self._archive = archive
        self._member = member

    @contextmanager
    def __call__(self) -> Iterator[IO[bytes]]:
        member = self._member
        stream = self._archive.extractfile(member) if member.isreg() and not member.issparse() else None
        if stream is None:
            raise TextError(f"{member.name} in {self._path} is no plain file; somebody has changed the archive")
        with stream:
            yield _unpacked(stream, member.size, self._path) if member.name.endswith(".gz") else stream


def _tar_members(path: Path) -> Iterator[tuple[str, _Opener]]:
    with path.open("rb") as file:
        plain = path.name.endswith(".tar")
        stream = file if plain else _unpacked(file, path.stat().st_size, path)
        # A stream, not a file: nothing is looked for behind the member that is wanted last.
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                yield member.name.removeprefix("./"), _Opener(path, archive, member)


def _single(path: Path) -> Iterator[tuple[str, Any]]:
    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with path.open("rb") as file:
            yield _unpacked(file, path.stat().st_size, path) if path.suffix == ".gz" else file

    yield path.name, opened


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


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TextError(f"{path} is damaged: {error}; remove it and give the same command again") from error
