"""Everybody can use the page: by keyboard, in the dark, on a phone, from right to left, and when things go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.judging import Judge
from tests.serve.served import Served, serving

pytest.importorskip("playwright", reason="no playwright here: make setup installs it")
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

TABS = ("Look inside", "Other wordings", "Glossary", "Files", "History", "Request")


def test_all_of_it_is_done_by_keyboard(page: Page) -> None:
    source = page.get_by_label("Text to translate")
    expect(source).to_be_focused()
    page.keyboard.type("basa koti rimo")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#target .word")).to_have_text(["omir", "itok", "asab"])
    for _ in range(20):
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".word").nth(1)).to_be_focused()
    expect(page.locator("#tip")).to_contain_text("from “koti”")
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem").nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".word").nth(1)).to_be_focused()
    page.get_by_role("tab", name="Other wordings").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Glossary")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Glossary")).to_be_visible()


def test_the_theme_is_the_systems_until_another_is_chosen(browser: Browser, served: Served) -> None:
    with browser.new_context(base_url=served.url, color_scheme="dark") as context:
        page = context.new_page()
        page.goto("/")
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.get_by_role("button", name="Colours: System").click()
        light = page.evaluate(ground)
        assert dark != light
        page.reload()
        expect(page.get_by_role("button", name="Colours: Light")).to_be_visible()
        assert page.evaluate(ground) == light
        page.get_by_role("button", name="Colours: Light").click()
        assert page.evaluate(ground) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, judge: Judge, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    assert judge(page) == []
    page.get_by_label("Text to translate").fill("basa koti")
    expect(page.locator("#target .word")).to_have_count(2)
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        assert judge(page) == [], name
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".word").first.click()
    expect(page.get_by_role("menuitem").first).to_be_visible()
    assert judge(page) == []


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 600})
    page.get_by_label("Text to translate").fill("basa koti " + "x" * 200)
    expect(page.locator("#target .word").first).to_be_visible()
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_text_runs_from_right_to_left_where_it_is_written_so(page: Page) -> None:
    page.get_by_label("Text to translate").fill("مرحبا بالعالم")
    assert page.evaluate("getComputedStyle(document.getElementById('mirror')).direction") == "rtl"
    assert page.evaluate("document.getElementById('source').matches(':dir(rtl)')")
    expect(page.locator("#target .word").first).to_be_visible()


def test_the_first_paint_costs_less_than_100_kilobytes(page: Page) -> None:
    page.reload(wait_until="networkidle")
    sizes = page.evaluate("performance.getEntriesByType('resource').map((one) => one.decodedBodySize)")
    page_size = page.evaluate("performance.getEntriesByType('navigation')[0].decodedBodySize")
    assert sum(sizes) + page_size < 100_000


def test_a_server_that_is_gone_is_told_and_waited_for(browser: Browser, exported: Path) -> None:
    with serving(exported) as server, browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        page.goto("/")
        source = page.get_by_label("Text to translate")
        source.fill("basa koti")
        expect(page.locator("#target .word")).to_have_count(2)
        server.stop()
        source.fill("basa koti rimo")
        expect(page.get_by_role("alert")).to_contain_text("The server does not answer. Your text is safe here")
        with serving(exported, "--port", str(server.port)):
            expect(page.locator("#target")).to_have_text("omir itok asab")
            expect(page.get_by_role("alert")).to_be_hidden()


def test_a_look_inside_waits_for_a_server_that_is_gone(browser: Browser, exported: Path) -> None:
    with serving(exported) as server, browser.new_context(base_url=server.url) as context:
        page = context.new_page()
        page.goto("/")
        page.get_by_label("Text to translate").fill("basa koti")
        expect(page.locator("#target .word")).to_have_count(2)
        server.stop()
        page.get_by_role("tab", name="Look inside").click()
        expect(page.locator("#inside-hint")).to_contain_text("The server does not answer")
        with serving(exported, "--port", str(server.port)) as second:
            page.get_by_role("tab", name="Compare").click()
            page.get_by_label("Second sentence").fill("basa rimo")
            second.stop()
            page.get_by_role("button", name="Compare", exact=True).click()
            expect(page.locator(".compare .problem")).to_contain_text("The server does not answer")
            with serving(exported, "--port", str(server.port)):
                expect(page.locator(".compare .sentence-pair")).to_have_count(2)
                expect(page.locator(".compare .problem")).to_be_empty()


def test_a_comparison_that_takes_long_says_that_it_is_under_way(page: Page) -> None:
    page.get_by_label("Text to translate").fill("basa koti")
    page.get_by_role("tab", name="Look inside").click()
    page.get_by_role("tab", name="Compare").click()
    page.get_by_label("Second sentence").fill("basa rimo")
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    page.route("**/inspect", hold, times=1)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".compare").get_by_role("status")).to_have_text("Looking inside …")
    asked[0].continue_()
    expect(page.locator(".compare .sentence-pair")).to_have_count(2)
    expect(page.locator(".compare").get_by_role("status")).to_be_hidden()


def test_a_text_that_is_too_long_is_told_before_it_is_sent(page: Page) -> None:
    page.get_by_label("Text to translate").fill("a" * 50_001)
    expect(page.get_by_role("alert")).to_contain_text("50,001 characters, and this server takes 50,000")


def test_a_limit_that_is_reached_is_told_and_tried_again(page: Page) -> None:
    def busy(route: Route) -> None:
        route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "Slowdown: …"})

    page.route("**/stream", busy, times=1)
    page.get_by_label("Text to translate").fill("basa koti")
    expect(page.get_by_role("alert")).to_contain_text("The server is busy")
    expect(page.locator("#target")).to_have_text("itok asab")


def test_other_words_and_files_are_asked_for_again_as_well(page: Page, tmp_path: Path) -> None:
    def away(route: Route) -> None:
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "not ready"})

    page.get_by_label("Text to translate").fill("basa koti")
    expect(page.locator("#target .word")).to_have_count(2)
    page.route("**/explain", away, times=1)
    page.locator("#target .word").first.click()
    expect(page.locator("#others")).to_contain_text("It is asked again in a moment")
    expect(page.get_by_role("menuitem").first).to_be_visible()
    page.keyboard.press("Escape")
    page.route("**/v2/document/*", away, times=1)
    file = tmp_path / "words.txt"
    file.write_text("basa koti\n")
    page.get_by_label("Translate a file").set_input_files(file)
    expect(page.locator("#files")).to_contain_text("It is asked again in a moment")
    expect(page.get_by_role("link", name="Download")).to_be_visible()


def test_whoever_opens_a_tab_before_all_has_come_stays_there(page: Page) -> None:
    held: list[Route] = []
    page.route("**/languages", lambda route: held.append(route))
    page.reload()
    page.get_by_role("tab", name="History").click()
    page.get_by_label("Text to translate").fill("basa koti")
    while not held:
        page.wait_for_timeout(10)
    held.pop().continue_()
    expect(page.locator("#target .word")).to_have_text(["itok", "asab"])
    expect(page.get_by_role("tabpanel", name="History")).to_be_visible()


def test_where_there_is_no_inspector_the_page_says_so(page: Page) -> None:
    page.route("**/page/inspector/**", lambda route: route.fulfill(status=404, body="{}"))
    page.get_by_label("Text to translate").fill("basa koti")
    page.get_by_role("tab", name="Look inside").click()
    expect(page.locator("#inside-hint")).to_have_text("The inspector is not part of this server.")
