"""The inspector's modules, served with the rules of a strict page, and a page to mount them in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qkv.pages import blank
from tests.browser.inspector.inspections import TIRED, WIDE, inspection

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

MODULES = Path(__file__).parents[3] / "qkv/page/inspector"

_SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Inspector</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css"></head>
<body><main><h1>Inspector</h1><div id="place"></div></main></body></html>"""


class _Handler(SimpleHTTPRequestHandler):
    """The modules, an empty page to mount them in, and the page that is saved."""

    def do_GET(self) -> None:
        pages_made = {"/": _SHELL, "/saved.html": blank(MODULES)}
        path = self.path.split("?")[0]
        if path not in pages_made:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(pages_made[path].encode())
        return None

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", "default-src 'self'; img-src 'self' data: blob:")
        super().end_headers()

    def log_message(self, *said: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(MODULES)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def room(browser: Browser, address: str) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def page(room: BrowserContext) -> Iterator[Page]:
    page = room.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield page
    assert faults == []


@pytest.fixture(scope="module")
def tired() -> dict[str, Any]:
    return inspection(*TIRED)


@pytest.fixture(scope="module")
def wide() -> dict[str, Any]:
    return inspection(*WIDE, seed=2)
