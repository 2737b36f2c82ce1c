"""Zip archives that hold a document: read within bounds, and written the same way every time."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

from qkv.files.segments import refused

_MOST_FILES = 10_000
_MOST_BYTES = 256 << 20
"""Of all files together, unpacked."""
_MOST_RATIO = 200
_SMALL = 1 << 20
"""Bytes that may be packed as tightly as they like: an empty page is."""
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How the files of a document may be packed, by its standard."""
_LONGEST_NAME = 1_000
# What a zip archive says is taken on trust by its reader: where in the file something is, how long, in which letters.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(ValueError, OverflowError, RuntimeError, OSError),
)


def unpacked(data: bytes, name: str) -> dict[zipfile.ZipInfo, bytes]:
    """The files of an archive, none of which is believed about its size."""
    result: dict[zipfile.ZipInfo, bytes] = {}
    left = _MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) > _MOST_FILES:
                raise refused(name, f"it has more than {_MOST_FILES:,} files in it", "no program writes such files")
            for info in archive.infolist():
                if info.flag_bits & 1:
                    raise refused(name, "it is locked with a password", "save it without one")
                if info.compress_type not in _WAYS or len(info.filename) > _LONGEST_NAME:
                    told = f"{info.filename[:60]!r} in it is packed or named as in no document"
                    raise refused(name, told, "save it anew")
                most = min(left, max(_SMALL, min(info.compress_size, len(data)) * _MOST_RATIO))
                with archive.open(info) as file:
                    content = file.read(most + 1)
                if len(content) > most:
                    raise refused(name, f"{info.filename!r} in it unpacks to far too much", "it was made to do harm")
                left -= len(content)
                result[info] = content
    except _UNREADABLE as error:
        raise refused(name, f"it is no archive that can be read ({error})", "save it anew") from error
    if len({info.filename for info in result}) < len(result):
        raise refused(name, "it has two files of one name in it", "save it anew")
    return result


def packed(files: Mapping[zipfile.ZipInfo, bytes]) -> bytes:
    """An archive of these files, in their order; it has no time of its own, so the same files are the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info, content in files.items():
            written = zipfile.ZipInfo(info.filename, info.date_time)
            written.compress_type = info.compress_type
            written.external_attr = info.external_attr
            written.create_system = info.create_system
            archive.writestr(written, content)
    return buffer.getvalue()
