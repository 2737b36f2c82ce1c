"""The page and its parts: files of `qkv/page`, read once, which browsers keep until they change."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qkv import pages

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_ACCEPTED = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)


class File(NamedTuple):
    """What is sent, how it is written down, and a mark that changes with it."""

    data: bytes
    headers: dict[str, str]
    mark: str


class Static:
    """Answers with a file, or with the news that it has not changed."""

    def __init__(self) -> None:
        folder = pages.FOLDER
        texts = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        # What the inspector is saved as: its modules and its style, put together.
        texts["inspector/saved.html"] = pages.blank(folder / "inspector").encode()
        self._files = {name: (_plain(data), _small(data)) for name, data in texts.items()}

    def routes(self) -> list[Route]:
        return [
            Route("/", self._answer, methods=["GET"], include_in_schema=False),
            Route("/page/{name:path}", self._answer, methods=["GET"], include_in_schema=False),
        ]

    async def _answer(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise HTTPException(404)
        plain, small = self._files[name]
        file = small if _ACCEPTED.search(request.headers.get("accept-encoding", "")) else plain
        headers = {
            "ETag": file.mark,
            "Vary": "Accept-Encoding",
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY,
        }
        if file.mark in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.data, media_type=mimetypes.guess_type(name)[0], headers=headers | file.headers)


def _plain(data: bytes) -> File:
    return File(data, {}, f'"{hashlib.sha256(data).hexdigest()[:32]}"')


def _small(data: bytes) -> File:
    """The same, compressed; no time is written into it, so that the mark stays until the file changes."""
    written = gzip.compress(data, mtime=0)
    return File(written, {"Content-Encoding": "gzip"}, _plain(written).mark)
