"""What the file system refuses, as a person reads it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from qkv import storage
from qkv.errors import StorageError
from qkv.storage import explained, readable_size


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (262_144, "262.1 kB"),
        (1_340_000, "1.3 MB"),
        (2_500_000_000, "2.5 GB"),
        (7_300_000_000_000, "7,300.0 GB"),
    ],
)
def test_a_size_is_told_in_a_unit_that_fits_it(count: int, told: str) -> None:
    assert readable_size(count) == told


@pytest.mark.parametrize(
    ("number", "needed", "told"),
    [
        (
            errno.ENOSPC,
            1 << 60,
            "the disk is full: here needs 1,152,921,504,606,846,976 bytes, and {free} are free; make room and give the "
            "same command again",
        ),
        (
            errno.ENOSPC,
            1,
            "the disk is full: here needs 1 bytes, and {free} are free, but not to you: its inodes or your quota are "
            "used up; make room and give the same command again",
        ),
        (errno.EDQUOT, None, "the disk is full: here cannot be written; make room and give the same command again"),
        (errno.EROFS, 1234, "cannot write here: Read-only file system"),
        (errno.EACCES, None, "cannot write here: Permission denied"),
    ],
)
def test_a_refusal_says_what_to_do(number: int, needed: int | None, told: str) -> None:
    with pytest.raises(StorageError) as raised, explained(Path("here"), needed):
        raise OSError(number, os.strerror(number), "somewhere inside")
    assert re.sub(r"and [\d,]+ are free", "and {free} are free", str(raised.value)) == told


def test_a_directory_is_on_disk_with_all_that_is_below_it_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    monkeypatch.setattr(storage, "sync", lambda path: synced.append((path.name, (tmp_path / "new").exists())))
    with storage.replacing_directory(tmp_path / "new", 0) as place:
        (place / "below").mkdir()
        (place / "below" / "file").write_text("text")
    assert {("file", False), ("below", False), ("new.tmp", False)} <= {*synced}
