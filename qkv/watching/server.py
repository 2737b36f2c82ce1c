"""The page of a run, for the browsers of this machine alone."""

from __future__ import annotations

import json
import mimetypes
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from qkv import pages
from qkv.errors import QkvError, StorageError
from qkv.progress import tell
from qkv.watching.run import Watched

_HOST = "127.0.0.1"
_EVERY = 2.0
"""Seconds between two looks for new checkpoints."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Answer(NamedTuple):
    status: int
    kind: str
    body: bytes


class WatchServer(ThreadingHTTPServer):
    """Answers with the page, its parts, and what the run has to tell."""

    daemon_threads = True

    def __init__(self, watched: Watched, port: int) -> None:
        self.watched = watched
        self._files = {
            f"/{path.relative_to(pages.FOLDER)}": path.read_bytes()
            for folder in ("watch", "inspector")
            for path in (pages.FOLDER / folder).iterdir()
        }
        self._files["/"] = self._files["/watch/index.html"]
        self._files["/icon.svg"] = (pages.FOLDER / "icon.svg").read_bytes()
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            raise StorageError(f"cannot listen on {_HOST}:{port}: {error.strerror}; try another --port") from error

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.server_port}/"

    def answer(self, host: str, path: str) -> Answer:
        # A page from elsewhere must not reach this one by a name of its own.
        if host not in {f"{name}:{self.server_port}" for name in (_HOST, "localhost")}:
            return Answer(403, "text/plain", b"only for browsers of this machine")
        if path == "/told":
            try:
                told: dict[str, Any] = self.watched.told()
            except QkvError as error:
                told = {"error": str(error)}
            return Answer(200, "application/json", json.dumps(told, ensure_ascii=False).encode())
        if path not in self._files:
            return Answer(404, "text/plain", b"there is no such page")
        return Answer(200, mimetypes.guess_type(path)[0] or "text/html", self._files[path])


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer

    def do_GET(self) -> None:
        status, kind, body = self.server.answer(self.headers.get("Host", ""), self.path.split("?")[0])
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: Any) -> None:
        """Whoever looks at a page needs no line about it."""


def serve(watched: Watched, port: int) -> None:
    """Shows the run until a signal comes."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            watched.look()
            ended.wait(_EVERY)

    with WatchServer(watched, port) as server:
        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        tell(f"qkv: the run is shown at {server.url}; Ctrl-C ends it")
        try:
            server.serve_forever()
        finally:
            ended.set()
            looking.join(5)
