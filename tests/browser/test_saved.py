"""Pages that need no server: as a file, without a network, and in a notebook's frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qkv import Translator
from tests.toy import Command, held_out

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.judging import Judge

FIRST, _ = held_out()[0]
SECOND = f"{FIRST} basa"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A browser without a network; whatever a page complains of fails the test."""
    context = browser.new_context(offline=True, accept_downloads=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def saved(command: Command, toy_run: Path, tmp_path: Path) -> Path:
    """What `qkv attention` writes."""
    path = tmp_path / "attention.html"
    command("attention", FIRST, toy_run, "--compare", SECOND, "--html", path)
    return path


def test_a_file_of_the_command_line_opens_without_a_network(page: Page, saved: Path, toy_run: Path) -> None:
    page.goto(saved.as_uri())
    text = Translator.load(toy_run).translate([FIRST])[0].text
    assert page.locator("header .target").inner_text() == text
    for name in ("Step by step", "Positions", "Probabilities", "Beam search", "Compare", "Attention"):
        page.get_by_role("tab", name=name).click()
        assert page.get_by_role("tabpanel").locator("svg, canvas, table").count() > 0
    assert page.locator(".inspector").evaluate("(one) => getComputedStyle(one).display") == "block"


def test_it_saves_itself_and_runs_no_other_script(page: Page, saved: Path, tmp_path: Path) -> None:
    page.goto(saved.as_uri())
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save as HTML").click()
    again = tmp_path / "again.html"
    downloading.value.save_as(again)
    page.goto(again.as_uri())
    assert page.get_by_role("tab").count() == 6
    foreign = again.read_text().replace("</main>", "</main><script>document.title = 'foreign'</script>")
    again.write_text(foreign)
    refused: list[str] = []
    other = page.context.new_page()
    other.on("console", lambda said: refused.append(said.text))
    other.goto(again.as_uri())
    assert other.get_by_role("tab").count() == 6
    assert other.title() != "foreign" and "Content Security Policy" in refused[0]


def test_a_notebook_draws_an_attention(page: Page, toy_run: Path) -> None:
    found = Translator.load(toy_run).translate([FIRST])[0]
    page.set_content(f"<!doctype html><title>Notebook</title><main>{found.attention._repr_html_()}</main>")
    inside = page.frame_locator("iframe")
    inside.get_by_role("tab", name="Probabilities").click()
    assert inside.locator(".probabilities tbody tr").count() == len(found.attention.target.tokens)
    inside.get_by_role("tab", name="Attention").click()
    assert inside.get_by_role("slider").is_visible()
    with page.expect_download() as downloading:
        inside.get_by_role("button", name="Save as SVG").click()
    assert downloading.value.suggested_filename.endswith(".svg")


def test_nothing_keeps_people_from_using_it(page: Page, saved: Path, judge: Judge) -> None:
    page.goto(saved.as_uri())
    assert judge(page) == []
