"""Writing that a crash leaves whole, and one clear line for what the file system refuses."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO, TextIOWrapper
from pathlib import Path

from qkv.errors import ConfigError, FullDiskError, StorageError

_UNITS = {"GB": 1e9, "MB": 1e6, "kB": 1e3}
_LOOK = 0.005
"""Seconds in which a look at a lock is over, as a rule."""
_LONGEST_LOOK = 30.0
"""Seconds after which it is given up to wait for one: whoever looks was stopped in the midst of it."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file of our own by another in one instant, so that there is always a whole one.

    A link is replaced itself: whoever was handed a directory does not want it to write anywhere else.
    """
    with explained(path, len(content)), replacing(path, follow=False) as file:
        file.buffer.write(content)


def require_writable(path: Path) -> None:
    """Refuses what `write_atomically` could not write, before the work of which it is the result."""
    with explained(path):
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a file")
        _require_ours(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()


@contextmanager
def replacing(path: Path, *, follow: bool = True) -> Iterator[TextIOWrapper]:
    """A new file that takes the place of another once all is written; where that fails, the old one stays.

    Behind a link, the file it leads to is replaced and not the link, unless it is not to be followed.
    """
    path = path.resolve() if follow else path
    _require_ours(path)
    temporary = path.with_name(path.name + ".tmp")
    try:
        # One that a crash left behind, or a link that somebody put there.
        temporary.unlink(missing_ok=True)
        with temporary.open("x", encoding="utf-8") as file:
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
def replacing_directory(directory: Path, needed: int | None) -> Iterator[Path]:
    """A directory to write into that takes the place of another once all in it is safely on disk.

    It will have `needed` bytes, if that is known.
    """
    temporary, old = (directory.with_name(directory.name + ending) for ending in (".tmp", ".old"))
    with explained(directory, needed):
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        require_room(directory, needed or 0)
        temporary.mkdir()
        try:
            yield temporary
            for path in [*temporary.rglob("*"), temporary]:
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


def read_regular(path: Path, most: int) -> bytes:
    """What is in a file; a pipe, a device or a file of more bytes is refused before it is read."""
    # Opening a pipe would wait for somebody to write to it.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a file")
        if found.st_size > most:
            raise ValueError(f"it is larger than {most:,} bytes")
        return file.read(most)


def file_digest(path: Path, kind: str = "sha256") -> str:
    """What a file's content comes to, in hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, kind).hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error


def append_regular(path: Path) -> FileIO:
    """A file of our own to write more into, or to lock; what a link leads to is not, nor is a pipe."""
    # Opening a pipe would wait for somebody to read from it.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = FileIO(os.open(path, flags, 0o666), "ab")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    return file


def claim(lock: FileIO) -> None:
    """Locks a file for this process alone, until it is closed; BlockingIOError where another process has it."""
    until = time.monotonic() + _LONGEST_LOOK
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # It can be shared where somebody only looks whether it is claimed, which is soon over.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_UN)
            if time.monotonic() > until:
                raise
        time.sleep(_LOOK)


def is_claimed(lock: Path) -> bool:
    """Whether a process has locked this file; one that was killed has not."""
    try:
        file = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def remove(path: Path) -> None:
    """Removes a directory with all that is in it, a file, or a link and not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
        raise refusal(path, error, needed) from error


def refusal(path: Path | str, error: OSError, needed: int | None = None) -> StorageError:
    """What the file system refused to write, as an error that says what to do."""
    if is_full(error):
        return _full(path, needed)
    return StorageError(f"cannot write {path}: {error.strerror or error}")


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


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


def _require_ours(path: Path) -> None:
    if path.exists() and not os.access(path, os.W_OK, effective_ids=True):
        # Renaming asks only the directory.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _full(path: Path | str, needed: int | None) -> FullDiskError:
    what = "cannot be written"
    if needed is not None:
        free = free_bytes(Path(path))
        # Not only bytes run out: there may be no room for one more file, or none left for this user.
        spent = ", but not to you: its inodes or your quota are used up" if free >= needed else ""
        what = f"needs {needed:,} bytes, and {free:,} are free{spent}"
    return FullDiskError(f"the disk is full: {path} {what}", "make room and give the same command again")


def readable_size(count: int) -> str:
    """A number of bytes as a person reads it: `1.3 MB`."""
    for name, unit in _UNITS.items():
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"
