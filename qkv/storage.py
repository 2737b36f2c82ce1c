"""Writing that a crash leaves whole, and one clear line for what the file system refuses."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from qkv.errors import ConfigError, FullDiskError, StorageError

_UNITS = {"GB": 1e9, "MB": 1e6, "kB": 1e3}


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file by another in one instant, so that there is always a whole one."""
    with explained(path, len(content)), replacing(path) as file:
        file.buffer.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[TextIOWrapper]:
    """A new file that takes the place of another once all is written; where that fails, the old one stays."""
    # Behind a link: the file it leads to is replaced, and not the link.
    path = path.resolve()
    if path.exists() and not os.access(path, os.W_OK, effective_ids=True):
        # Renaming asks only the directory.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
        if path.exists():
            shutil.copymode(path, temporary)
        sync(temporary)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def replacing_directory(directory: Path, needed: int) -> Iterator[Path]:
    """A directory to write into that takes the place of another once all in it is safely on disk."""
    temporary, old = (directory.with_name(directory.name + ending) for ending in (".tmp", ".old"))
    with explained(directory, needed):
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        require_room(directory, needed)
        temporary.mkdir()
        try:
            yield temporary
            for path in [*temporary.iterdir(), temporary]:
                sync(path)
            shutil.rmtree(old, ignore_errors=True)
            if directory.exists():
                directory.rename(old)
            temporary.rename(directory)
            sync(directory.parent)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def sync(path: Path) -> None:
    """Makes the disk hold what was written to a file or directory, before anything relies on it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turns what the file system refuses into an error that says what to do; `needed` bytes, if that is known."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(path, needed) from error
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def require_utf8(names: Iterable[str | Path]) -> None:
    """Refuses names of files that are not text: a report could not name them, nor a library of weights open them."""
    for name in map(str, names):
        try:
            name.encode()
        except UnicodeEncodeError as error:
            shown = os.fsencode(name).decode(errors="backslashreplace")
            raise ConfigError(f"the name {shown} is not UTF-8; rename it, or link to it by a name that is") from error


def require_room(path: Path, needed: int) -> None:
    """Refuses to begin writing what would fill the disk on the way."""
    if free_bytes(path) < needed:
        raise _full(path, needed)


def free_bytes(path: Path) -> int:
    """What is free where a file or directory is, or would be."""
    return shutil.disk_usage(next(one for one in (path, *path.absolute().parents) if one.exists())).free


def _full(path: Path, needed: int | None) -> FullDiskError:
    what = "cannot be written" if needed is None else f"needs {needed:,} bytes, and {free_bytes(path):,} are free"
    return FullDiskError(f"the disk is full: {path} {what}", "make room and give the same command again")


def readable_size(count: int) -> str:
    """A number of bytes as a person reads it: `1.3 MB`."""
    for name, unit in _UNITS.items():
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"
