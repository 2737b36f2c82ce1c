"""The page and its parts: files of `qkv/page`, read once, which browsers keep until they change."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import qkv

_FOLDER = Path(qkv.__file__).parent / "page"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Static:
    """Answers with a file, or with the news that it has not changed."""

    def __init__(self) -> None:
        self._files = {
            str(path.relative_to(_FOLDER)): path.read_bytes() for path in sorted(_FOLDER.rglob("*")) if path.is_file()
        }
        self._marks = {name: f'"{hashlib.sha256(data).hexdigest()[:32]}"' for name, data in self._files.items()}

    def routes(self) -> list[Route]:
        return [
            Route("/", self._answer, methods=["GET"], include_in_schema=False),
            Route("/page/{name:path}", self._answer, methods=["GET"], include_in_schema=False),
        ]

    async def _answer(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            raise HTTPException(404)
        headers = {"ETag": self._marks[name], "Cache-Control": "no-cache", "Content-Security-Policy": _POLICY}
        if self._marks[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._files[name], media_type=mimetypes.guess_type(name)[0], headers=headers)
