"""One file from the web to disk: it goes on where it was cut off, and is taken only if it is what it should be."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import qkv
from qkv.errors import DownloadError
from qkv.progress import Progress, tell
from qkv.storage import explained, require_room, sync

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts; one that brought something begins the row anew."""
_SILENCE = 60.0
"""Seconds without a byte after which a connection counts as lost."""
_BLOCK = 1 << 18
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Answers of a server that may be better next time."""


class _Cut(Exception):  # noqa: N818 - one more attempt may do
    """An attempt ended before the file did."""


def download(url: str, path: Path, most: int, *, pauses: Sequence[float] = PAUSES) -> bool:
    """Brings a file to `path`, where it appears when all of it is on disk; tells whether it had been begun before.

    A server that sends more than `most` bytes sends something else, or without end: nothing of it is kept.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    begun_before = part.exists()
    attempt, farthest = -1, _size(part)
    while True:
        try:
            _attempt(url, part, most)
            break
        except _Cut as cut:
            # Not what this attempt brought: a server that cannot give the end would be asked for ever.
            attempt = 0 if _size(part) > farthest else attempt + 1
            farthest = max(farthest, _size(part))
            if attempt >= len(pauses):
                raise DownloadError(f"{cut}; {_remedy(path)}") from cut
            tell(f"qkv: {cut}; trying again in {pauses[attempt]:g} s")
            time.sleep(pauses[attempt])
    with explained(path):
        sync(part)
        part.rename(path)
        _about(part).unlink(missing_ok=True)
        sync(path.parent)
    return begun_before


def forget(path: Path) -> None:
    """Removes a file and what was begun of it."""
    part = path.with_name(path.name + ".part")
    for one in (path, part, _about(part)):
        one.unlink(missing_ok=True)


def _attempt(url: str, part: Path, most: int) -> None:
    """Appends what is missing, or begins anew where the server has another file now."""
    there = _size(part)
    known = _read_about(part) if there else {}
    headers = {"User-Agent": f"qkv/{qkv.__version__}", "Accept-Encoding": "identity"}
    if validator := _strong(known.get("validator")):
        headers |= {"Range": f"bytes={there}-", "If-Range": validator}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_SILENCE) as response:
            goes_on = response.status == http.HTTPStatus.PARTIAL_CONTENT
            if goes_on and not (response.headers["Content-Range"] or "").startswith(f"bytes {there}-"):
                part.unlink()
                raise _Cut(f"{url} answered with another part than was asked for")
            _receive(response, url, part, there if goes_on else 0, most)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # What is there is all, or more than all, of the file.
            if there and known.get("bytes") == there:
                return
            part.unlink()
            raise _Cut(f"{url} has no more than what is here") from error
        told = f"{url} answers {error.code} {error.reason}"
        if error.code in _PASSING:
            raise _Cut(told) from error
        raise DownloadError(f"{told}: it may have moved; {_remedy(part.with_suffix(''))}") from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error
        host = urllib.parse.urlsplit(url).netloc
        raise _Cut(f"cannot reach {host}: {getattr(reason, 'strerror', None) or reason or 'no answer'}") from error


def _receive(response: http.client.HTTPResponse, url: str, part: Path, begin: int, most: int) -> None:
    length = _length(response.headers["Content-Length"])
    total = None if length is None else begin + length
    if total is not None and total > most:
        _give_up(url, part, most)
    validator = response.headers["ETag"] or response.headers["Last-Modified"]
    with explained(part):
        about = {"validator": _strong(validator), "bytes": total}
        _about(part).write_text(json.dumps(about), encoding="utf-8")
        if total is not None:
            require_room(part, total - begin)
    name = part.name.removesuffix(".part")
    with (
        Progress(f"downloading {name}", total=total, unit="bytes", done=begin) as progress,
        _opened(part, "ab" if begin else "wb") as file,
    ):
        while block := response.read(_BLOCK):
            if file.tell() + len(block) > most:
                _give_up(url, part, most)
            with explained(part, None if total is None else total - begin):
                file.write(block)
            progress.advance(len(block))
    if total is not None and _size(part) != total:
        raise _Cut(f"{url} broke off after {_size(part):,} of {total:,} bytes")


def _give_up(url: str, part: Path, most: int) -> NoReturn:
    path = part.with_suffix("")
    for one in (part, _about(part)):
        one.unlink(missing_ok=True)
    raise DownloadError(
        f"{url} sends more than the {most:,} bytes that {path.name} can have, so it is another file or has no end, and "
        f"what came is removed; {_elsewhere(path)}"
    )


def _length(told: str | None) -> int | None:
    """How many bytes will come, where a server says so; a number of thousands of digits is none to Python either."""
    try:
        length = int(told or "")
    except ValueError:
        return None
    return length if length >= 0 else None


def _strong(validator: object) -> str | None:
    """What a server knows equal bytes by, as it can be told to it again, where there is such a thing."""
    # A weak one promises no equal bytes, so nothing could be appended by it.
    if not isinstance(validator, str) or validator.startswith("W/"):
        return None
    return validator if validator.isascii() and validator.isprintable() else None


def _opened(part: Path, mode: str) -> Any:
    with explained(part):
        return part.open(mode, buffering=0)


def _about(part: Path) -> Path:
    """Where it is written down which file a part is of."""
    return part.with_name(part.name + ".json")


def _read_about(part: Path) -> Mapping[str, Any]:
    try:
        about = json.loads(_about(part).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _elsewhere(path: Path) -> str:
    return f"name a mirror by --from or QKV_MIRROR, or put the file at {path} yourself"


def _remedy(path: Path) -> str:
    return (
        "is there a network? A proxy is taken from https_proxy, a mirror from --from or QKV_MIRROR; what was brought "
        f"stays, the same command goes on, and a file that you put at {path} yourself is taken too"
    )
