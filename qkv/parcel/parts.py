"""A parcel on disk: named streams of bytes, cut into pieces that are compressed side by side, in parts of one size."""

from __future__ import annotations

import bz2
import json
import os
import re
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol

import numpy as np

from qkv.errors import CheckpointError, ConfigError
from qkv.manifest import MANIFEST, read_manifest, verified, write_manifest
from qkv.storage import replacing_directory

INDEX = "parcel.json"

_FORMAT = 1
_PIECE = 4 << 20
_LEAST_PART = 1 << 12
_AHEAD = 4
_PART = re.compile("part-[0-9]+")


class Codec(NamedTuple):
    """A way to make bytes fewer, and back."""

    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _planes(width: int) -> Codec:
    """For numbers of so many bytes that no text repeats: all first bytes, then all second ones, …, quickly deflated.

    Of a floating-point number, the byte with the exponent is the only one that says less than it could.
    """

    def pack(content: bytes) -> bytes:
        whole = len(content) // width * width
        turned = np.frombuffer(content[:whole], np.uint8).reshape(-1, width).T.tobytes()
        return zlib.compress(turned + content[whole:], 1)

    def unpack(packed: bytes) -> bytes:
        content = _one_piece(packed, zlib.decompressobj())
        whole = len(content) // width * width
        return np.frombuffer(content[:whole], np.uint8).reshape(width, -1).T.tobytes() + content[whole:]

    return Codec(pack, unpack)


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, packed: bytes, most: int, /) -> bytes: ...


def _one_piece(packed: bytes, decompressor: _Decompressor) -> bytes:
    """What was packed; a few bytes that would become more than one piece are refused, as they could fill memory."""
    try:
        content = decompressor.decompress(packed, _PIECE + 1)
    except (OSError, zlib.error) as error:
        # Not as an OSError: the file system has refused nothing.
        raise ValueError(str(error)) from error
    if len(content) > _PIECE or not decompressor.eof or decompressor.unused_data:
        raise ValueError("not a piece")
    return content


CODECS: Mapping[str, Codec] = {
    # For ids: a tenth larger than LZMA makes them, in a tenth of the time.
    "text": Codec(bz2.compress, lambda packed: _one_piece(packed, bz2.BZ2Decompressor())),
    "float32": _planes(4),
    "bfloat16": _planes(2),
}


class Member(NamedTuple):
    """A named stream of bytes, and how it is compressed."""

    name: str
    codec: str
    pieces: Iterable[bytes]


def write_parcel(
    output: Path, kind: str, members: Callable[[Path], Iterable[Member]], about: Mapping[str, Any], part_bytes: int
) -> int:
    """Writes a parcel in parts of so many bytes at most; tells how many there are.

    The members are made one after the other, and may use a directory for that.
    """
    if part_bytes < _LEAST_PART:
        raise ConfigError(f"parts of {part_bytes:,} bytes are too small; give at least {_LEAST_PART:,}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} is not an empty directory; choose another, or remove it")
    with replacing_directory(output, None) as place:
        parts = _Parts(place, part_bytes)
        # Inside its place: where this process is killed, the next one removes both.
        with tempfile.TemporaryDirectory(dir=place) as folder:
            described = _add_all(parts, members(Path(folder)))
        index = {"format": _FORMAT, "kind": kind, "about": about, "members": described}
        (place / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
        write_manifest(place, {})
    return parts.count


class Parcel:
    """A parcel whose parts are all there and are what they were, with names that lead nowhere else."""

    def __init__(self, directory: Path) -> None:
        files = _described(directory)
        wrong = [name for name in sorted(files) if not _is_sound(directory, name, files)]
        if wrong:
            raise CheckpointError(f"{directory} is not whole; missing or damaged, to be sent again: {', '.join(wrong)}")
        index = _index(directory, files)
        self.about = index.about
        self._directory = directory
        self._members = index.members
        for outside in (one.name for one in self._members if not _stays_inside(one.name)):
            raise CheckpointError(f"{directory} is damaged: its file {outside!r} would be written elsewhere")
        # By number: by name, the thousandth part would come before the hundred-and-first.
        self._parts = [directory / name for name in sorted(filter(_PART.fullmatch, files), key=_number)]

    def members(self) -> Iterator[Member]:
        """Each in turn; the pieces of one have to be read before the next is asked for."""
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            packed = self._packed()
            for one in self._members:
                pieces = (next(packed) for _ in one.lengths)
                yield Member(one.name, one.codec, self._unpacked(threads, one.codec, pieces))

    def _unpacked(self, threads: ThreadPoolExecutor, codec: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        with consistent(self._directory):
            yield from _side_by_side(threads, CODECS[codec].unpack, pieces)

    def _packed(self) -> Iterator[bytes]:
        """All pieces in order; no part ends within one."""
        lengths = [length for one in self._members for length in one.lengths]
        if min(lengths, default=1) < 1 or sum(lengths) != sum(part.stat().st_size for part in self._parts):
            raise ValueError("the pieces are not the parts")
        following = iter(lengths)
        for part in self._parts:
            with part.open("rb") as file:
                while file.tell() < part.stat().st_size:
                    length = next(following)
                    packed = file.read(length)
                    if len(packed) != length:
                        raise ValueError("a part ends within a piece")
                    yield packed


def kind_of(directory: Path) -> str:
    """What a parcel holds: data, or a run."""
    files = _described(directory)
    return _index(directory, files).kind


@contextmanager
def consistent(directory: Path) -> Iterator[None]:
    """Inside, what a parcel says and what cannot be is told as damage: a checksum vouches for bytes, not for sense."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(
            f"{directory} is damaged: {INDEX} and the parts do not fit together; pack it again"
        ) from error


def file_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _add_all(parts: _Parts, members: Iterable[Member]) -> list[dict[str, Any]]:
    """Adds the members one after the other; tells how to find them."""
    described = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for name, codec, pieces in members:
            # A piece may not shrink at all, and some bytes come on top.
            cut = _cut(pieces, min(_PIECE, parts.most * 63 // 64 - 1024))
            lengths = []
            for packed in _side_by_side(threads, CODECS[codec].pack, cut):
                parts.add(packed)
                lengths.append(len(packed))
            described.append({"name": name, "codec": codec, "pieces": lengths})
    return described


class _Parts:
    def __init__(self, place: Path, most: int) -> None:
        self.most = most
        self._place = place
        self._room = 0
        self.count = 0

    def add(self, packed: bytes) -> None:
        if len(packed) > self._room:
            self.count += 1
            self._room = self.most
        with (self._place / f"part-{self.count - 1:03}").open("ab") as file:
            file.write(packed)
        self._room -= len(packed)


def _number(part: str) -> int:
    return int(part.removeprefix("part-"))


def _stays_inside(name: str) -> bool:
    """Whether a name is a file's below any directory that it is unpacked into; what is unpacked has no links."""
    path = PurePosixPath(name)
    return bool(path.name) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _described(directory: Path) -> dict[str, dict[str, Any]]:
    if not (directory / MANIFEST).is_file() or not (directory / INDEX).is_file():
        raise ConfigError(f"{directory} is no parcel: it has no {MANIFEST} and {INDEX}; `qkv pack` makes one")
    return read_manifest(directory)


class _Entry(NamedTuple):
    """A member, and how long its pieces are as they are in the parts."""

    name: str
    codec: str
    lengths: list[int]


class _Index(NamedTuple):
    kind: str
    about: dict[str, Any]
    members: list[_Entry]


def _index(directory: Path, files: Mapping[str, Mapping[str, Any]]) -> _Index:
    path = verified(directory, INDEX, files)
    with consistent(directory):
        index = json.loads(path.read_text(encoding="utf-8"))
        if index["format"] != _FORMAT:
            raise CheckpointError(f"{directory} was packed by another version of qkv; pack it again with this one")
        members = [_Entry(one["name"], one["codec"], list(one["pieces"])) for one in index["members"]]
        for one in members:
            # A name that a file can have, and a codec that there is.
            one.name.encode(), CODECS[one.codec]
        return _Index(str(index["kind"]), dict(index["about"]), members)


def _is_sound(directory: Path, name: str, files: Mapping[str, Mapping[str, Any]]) -> bool:
    try:
        verified(directory, name, files)
    except CheckpointError:
        return False
    return True


def _cut(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        yield from (piece[first : first + size] for first in range(0, len(piece), size))


def _side_by_side(
    threads: ThreadPoolExecutor, function: Callable[[bytes], bytes], pieces: Iterable[bytes]
) -> Iterator[bytes]:
    """What becomes of each, in order; no more are under way than there are threads for, and a few."""
    waiting: deque[Future[bytes]] = deque()
    for piece in pieces:
        waiting.append(threads.submit(function, piece))
        if len(waiting) > _AHEAD + (os.cpu_count() or 1):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
