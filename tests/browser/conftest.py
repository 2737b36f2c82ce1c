"""A real browser, and the page of a real server in it. Who has no browser is told what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.judging import Judge, found_axe
from tests.serve.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome")


# Not for the whole session: while it is there, a loop runs in this thread that other tests would stumble over.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright here: make setup installs it")
    path = os.environ.get("QKV_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no browser here: apt-get install chromium, or name one by QKV_CHROMIUM")
    # A busy machine is no reason to fail.
    sync_api.expect.set_options(timeout=20_000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser, served: Served) -> Iterator[BrowserContext]:
    """A browser that has never been here."""
    context = browser.new_context(
        base_url=served.url, viewport={"width": 1280, "height": 800}, reduced_motion="reduce", accept_downloads=True
    )
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """The page, just opened; a script that fails, or breaks the page's own rules, fails the test."""
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto("/")
    yield page
    assert faults == []


@pytest.fixture
def judge() -> Judge:
    """axe-core, which knows what keeps people from using a page."""
    path: Path | None = found_axe()
    if path is None:
        pytest.skip("no axe-core here: make setup installs it where there is npm, or name axe.min.js by QKV_AXE")
    return Judge(path.read_text(encoding="utf-8"))
