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
_MEANING = {
    **dict.fromkeys((301, 302, 303, 307, 308), "it leads on without an end, or nowhere"),
    **dict.fromkeys((401, 403, 407), "it lets in only whom it knows"),
    **dict.fromkeys((404, 410), "it may have moved"),
}
_LONGEST = 200
"""Characters of somebody else's words that are shown."""


class _Cut(Exception):  # noqa: N818 - one more attempt may do
    """An attempt ended before the file did; whoever answered is there."""

    advice = "try again later"


class _Unreached(_Cut):
    """Nobody answered, or not to the end."""

    advice = "is there a network? A proxy is taken from https_proxy"


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
                kept = "What was brought stays, and the same command goes on"
                raise DownloadError(f"{cut}; {cut.advice}. {kept}; or {_elsewhere(path)}") from cut
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
        with _answer(url, headers, part) as response:
            goes_on = response.status == http.HTTPStatus.PARTIAL_CONTENT
            if goes_on and not (response.headers["Content-Range"] or "").startswith(f"bytes {there}-"):
                part.unlink()
                raise _Cut(f"{url} answered with another part than was asked for")
            _receive(response, url, part, there if goes_on else 0, most)
    except urllib.error.HTTPError as error:
        error.close()
        if there and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            # What is there is all, or more than all, of the file.
            if known.get("bytes") == there:
                return
            part.unlink()
            raise _Cut(f"{url} has no more than what is here") from error
        raise _refusal(url, error.code, part) from error
    except (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error
        told = _visible(getattr(reason, "strerror", None) or reason) or "no answer"
        raise _Unreached(f"cannot reach {_host(url)}: {told}") from error
    except http.client.IncompleteRead as error:
        raise _Cut(f"{url} broke off after {_size(part):,} bytes") from error
    except http.client.HTTPException as error:
        raise _Cut(f"{_host(url)} answers, but not by HTTP: {_visible(error)}") from error


def _answer(url: str, headers: Mapping[str, str], part: Path) -> Any:
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers={**headers}), timeout=_SILENCE)
    except (http.client.InvalidURL, ValueError) as error:
        # Of this address, or of one that it was redirected to.
        told = f"{url} leads to what is no address: {_visible(error)}"
        raise DownloadError(f"{told}; {_elsewhere(part.with_suffix(''))}") from error


def _refusal(url: str, code: int, part: Path) -> _Cut | DownloadError:
    """What to say of an answer that is no file: not in the server's own words, which may be anything."""
    told = f"{url} answers {code} {http.client.responses.get(code, '')}".rstrip()
    if code in _PASSING:
        return _Cut(told)
    told += f": {_MEANING[code]}" if code in _MEANING else ""
    return DownloadError(f"{told}; {_elsewhere(part.with_suffix(''))}")


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


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def _visible(said: object) -> str:
    """Words of a server or a library on one line, and not for long; nothing in them can move a terminal's cursor."""
    words = "".join(one if one.isprintable() else " " for one in str(said)).split()
    line = " ".join(words)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
