"""What a request says: parameters of its query and its body, however they are written, within limits of size and time.

Clients send JSON, forms, files and query strings for the same call, also with GET; what is null is not said at all.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from qkv.serve.refusals import Refusal

_MOST_FIELDS = 4096
_BYTES_A_FIELD = 1 << 20
_BYTES_AT_A_TIME = 1 << 16
_JSON_LENGTH = "inference-header-content-length"
_DIGITS = re.compile(r"[0-9]{1,18}")


class Buffers:
    """How many bytes of bodies are in memory at once, of all requests."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take(self, count: int) -> None:
        if count > self._left:
            raise Refusal("busy", "Slowdown: too much is being received; try again later.", retry_after=1, close=True)
        self._left -= count

    def give_back(self, count: int) -> None:
        self._left += count


class File(NamedTuple):
    """A file that came with a form."""

    name: str
    data: bytes


class Asked:
    """A request and what it says."""

    def __init__(self, request: Request, values: dict[str, list[Any]], document: Any, rest: bytes) -> None:
        self.request = request
        self.document = document
        """The whole body, where it was JSON."""
        self.rest = rest
        """The bytes behind the JSON."""
        self._values = values

    def values(self, *names: str) -> list[Any]:
        """All that is said under the first of these names that is there at all."""
        return next((self._values[name] for name in names if self._values.get(name)), [])

    def word(self, *names: str) -> str | None:
        """One short value; of several, the first."""
        for value in self.values(*names):
            if isinstance(value, bool):
                return str(value).lower()
            if isinstance(value, (str, int, float)):
                return str(value).strip()
            raise Refusal("bad", f"Invalid request: {names[0]} must be a text", parameter=names[0])
        return None

    def texts(self, *names: str) -> list[str]:
        """Texts, all that are given."""
        texts = self.values(*names)
        if not all(isinstance(text, str) for text in texts):
            raise Refusal("bad", f"Invalid request: {names[0]} must be a text or a list of texts", parameter=names[0])
        return texts

    def is_list(self, name: str) -> bool:
        """Whether a body of JSON gives a list under this name."""
        return isinstance(self.document, dict) and isinstance(self.document.get(name), list)

    def number(self, name: str, *, default: int = 0) -> int:
        word = self.word(name)
        if word is None or word == "":
            return default
        try:
            return int(word)
        except ValueError as error:
            message = f"Invalid request: {name} must be a whole number, not {word[:20]!r}"
            raise Refusal("bad", message, parameter=name) from error

    def credentials(self, scheme: str) -> str | None:
        """What stands behind a scheme, such as `bearer`, in the header that says who asks."""
        said, _, credentials = self.request.headers.get("authorization", "").partition(" ")
        return credentials if said.lower() == scheme else None

    def file(self) -> File | None:
        """The file that came with a form, if one did."""
        every = itertools.chain.from_iterable(self._values.values())
        return next((value for value in every if isinstance(value, File)), None)


async def understood(request: Request, body: bytes) -> Asked:
    """Everything that a request says, in whole characters; raises `Refusal` where that is nonsense."""
    values: dict[str, list[Any]] = {}
    for name, value in _pairs(request.url.query):
        values.setdefault(name, []).append(value)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    document, rest = None, b""
    said: dict[str, list[Any]] = {}
    if kind == "multipart/form-data":
        said = await _multipart(request.headers, body)
    elif kind == "application/x-www-form-urlencoded" and not body.lstrip().startswith((b"{", b"[")):
        for name, value in _pairs(_decoded(body)):
            said.setdefault(name, []).append(value)
    elif body.strip():
        # The Open Inference Protocol has bytes behind its JSON.
        length = _counted(request.headers.get(_JSON_LENGTH, str(len(body))), _JSON_LENGTH)
        document, rest = _json(body[:length]), body[length:]
        if isinstance(document, dict):
            given = {name: value for name, value in document.items() if value is not None}
            said = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    # What the body says counts more than the address.
    return Asked(request, values | said, document, rest)


async def received(request: Request, *, buffers: Buffers, most_bytes: int, seconds: float) -> bytes:
    """The body of a request; raises `Refusal` where it is too large or too slow."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("media", "Invalid request: send the body without Content-Encoding", close=True)
    declared = _counted(request.headers.get("content-length", "0"), "content-length")
    too_large = Refusal("too_large", f"Invalid request: the body exceeds the limit of {most_bytes} bytes", close=True)
    if declared > most_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                buffers.take(len(part))
                size += len(part)
                if size > most_bytes:
                    raise too_large
                parts.append(part)
    except TimeoutError as error:
        message = f"Invalid request: the body did not come within {seconds:g} seconds"
        raise Refusal("slow", message, close=True) from error
    finally:
        buffers.give_back(size)
    return b"".join(parts)


def _counted(header: str, name: str) -> int:
    """How many bytes a header says that there are: digits, and not so many that they are no number of bytes at all."""
    if not _DIGITS.fullmatch(header):
        # What follows the head cannot be told from the next request then.
        raise Refusal("bad", f"Invalid request: {name.title()} is not a number of bytes", close=True)
    return int(header)


def _decoded(body: bytes) -> str:
    try:
        # Some clients put a mark of the byte order before it.
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal("bad", "Invalid request: the body is not UTF-8") from error


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refusal("bad", f"Invalid request: more than {_MOST_FIELDS} fields") from error


def _json(body: bytes) -> Any:
    try:
        document = json.loads(_decoded(body))
        return _whole(document) if b"\\u" in body else document
    except (ValueError, RecursionError) as error:
        raise Refusal("bad", "Invalid JSON format") from error


async def _multipart(headers: Headers, body: bytes) -> dict[str, list[Any]]:
    async def stream() -> AsyncGenerator[bytes, None]:
        for start in range(0, len(body), _BYTES_AT_A_TIME):
            yield body[start : start + _BYTES_AT_A_TIME]
            # A large file may be slow to read, and others wait for an answer.
            await asyncio.sleep(0)

    parser = MultiPartParser(
        headers, stream(), max_files=8, max_fields=_MOST_FIELDS, max_part_size=_BYTES_A_FIELD
    )  # fmt: skip
    # What has come is in memory already: none of it is written to a disk, which there may not be.
    parser.spool_max_size = len(body) + 1
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError, UnicodeDecodeError) as error:
        raise Refusal("bad", "Invalid request: the form cannot be read") from error
    values: dict[str, list[Any]] = {}
    for name, value in form.multi_items():
        file = File(_whole(value.filename or ""), await value.read()) if isinstance(value, UploadFile) else None
        values.setdefault(name, []).append(file or _whole(value))
    await form.close()
    return values


def _whole(value: Any) -> Any:
    """The same with texts that can be written as UTF-8: halves of characters that can be spelled become U+FFFD."""
    if isinstance(value, str):
        # Two halves that stand together are one.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    return value
