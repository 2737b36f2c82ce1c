"""Somebody translates on the page: typing, choosing, swapping, sending files, and what is kept and shared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.serve.served import Served

pytest.importorskip("playwright", reason="no playwright here: make setup installs it")
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route


def translate(page: Page, text: str, expected: str) -> None:
    page.get_by_label("Text to translate").fill(text)
    expect(page.locator("#target .word").first).to_be_visible()
    expect(page.locator("#target")).to_have_text(expected)


def test_typing_translates_and_what_is_stale_is_aborted(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/stream" in request.url else None)
    page.get_by_label("Text to translate").press_sequentially("basa koti rimo", delay=20)
    expect(page.locator("#target .word")).to_have_text(["omir", "itok", "asab"])
    # Nobody asked for what was typed on the way.
    assert len(asked) <= 2 and "basa koti rimo" in asked[-1]
    expect(page.locator("#said")).to_have_text("omir itok asab")
    page.get_by_label("Text to translate").fill("")
    expect(page.locator("#target")).to_be_empty()


def test_a_word_shows_where_it_came_from_and_what_else_could_be_there(page: Page) -> None:
    translate(page, "basa koti rimo", "omir itok asab")
    page.locator(".word", has_text="asab").hover()
    expect(page.locator("#mirror .on")).to_have_text("basa")
    expect(page.locator("#tip")).to_contain_text("sure · from “basa”")
    page.locator(".word", has_text="itok").click()
    others = page.get_by_role("menuitem")
    expect(others.first).to_be_focused()
    assert others.count() > 2
    other = others.nth(1).locator("b").text_content()
    others.nth(1).click()
    expect(page.locator(".word").nth(1)).to_have_text(str(other))
    # The wording that was made so is one of those that can be chosen.
    page.get_by_role("radio").first.check()
    expect(page.locator("#target")).to_have_text("omir itok asab")


def test_a_word_that_came_from_none_says_so(page: Page) -> None:
    def unaligned(route: Route) -> None:
        told = route.fetch().json()
        for word in told["sentences"][0]["wordings"][0]["words"]:
            word["sources"] = []
        route.fulfill(json=told)

    page.route("**/explain", unaligned)
    translate(page, "basa koti", "itok asab")
    page.locator(".word").first.hover()
    expect(page.locator("#tip")).to_contain_text("sure · from no word in particular")


def test_a_glossary_is_kept_here_and_followed(page: Page) -> None:
    page.get_by_role("tab", name="Glossary").click()
    page.get_by_label("Word", exact=True).fill("koti")
    page.get_by_label("becomes").fill("nesa")
    page.get_by_role("button", name="Add").click()
    page.get_by_label("Text to translate").fill("basa koti")
    expect(page.locator("#target")).to_contain_text("nesa")
    page.reload()
    page.get_by_role("tab", name="Glossary").click()
    expect(page.locator("#glossary li")).to_contain_text(["koti"])


def test_history_and_links_stay_in_the_browser(page: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    translate(page, "basa koti", "itok asab")
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    address = page.evaluate("navigator.clipboard.readText()")
    assert address == page.url and "#" in address.partition("basa")[0]
    page.get_by_role("tab", name="History").click()
    expect(page.locator("#history button")).to_contain_text("itok asab")
    sent: list[str] = []
    other = context.new_page()
    other.on("request", lambda request: sent.append(request.url))
    other.goto(address)
    expect(other.locator("#target")).to_have_text("itok asab")
    assert not any("basa" in url for url in sent)
    page.get_by_role("button", name="Clear history").click()
    expect(page.locator("#history")).to_have_text("Nothing yet.")
    assert page.evaluate("localStorage.getItem('qkv.history')") == "[]"


def test_a_link_of_languages_that_are_not_here_says_so(page: Page) -> None:
    page.goto("about:blank")
    page.goto("/#from=xx&to=fr&q=basa")
    expect(page.get_by_role("alert")).to_contain_text("This server has no model from xx to French")
    page.evaluate("location.hash = 'from=en&to=de&q=koti'")
    expect(page.get_by_role("alert")).to_contain_text("no model from English to de")
    page.evaluate("location.hash = 'q=basa'")
    expect(page.locator("#target")).to_have_text("asab")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_request_is_shown_as_it_can_be_sent(page: Page, served: Served) -> None:
    translate(page, "basa koti", "itok asab")
    page.get_by_role("tab", name="Request").click()
    expect(page.locator("#curl")).to_contain_text(f"curl {served.url}/translate")
    told: dict[str, object] = {}
    # The program is run as it stands there.
    exec(str(page.locator("#python").text_content()).replace("print", "told = "), told)
    assert told["told"] == "itok asab"


def test_a_file_comes_back_translated(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("basa koti\nrimo nesa\n")
    page.get_by_label("Translate a file").set_input_files(file)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "words.fr.txt"
    assert Path(download.value.path()).read_text() == "itok asab\nasen omir\n"


def test_a_file_of_an_unknown_kind_is_told(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"x")
    page.get_by_label("Translate a file").set_input_files(file)
    expect(page.locator("#files .wrong")).to_contain_text("png")


def test_languages_are_swapped_where_there_is_a_way_back(page: Page) -> None:
    translate(page, "basa koti", "itok asab")
    expect(page.get_by_role("button", name="Swap languages")).to_be_disabled()

    def both_ways(route: Route) -> None:
        route.fulfill(json=[{"code": "en", "name": "English", "targets": ["fr"]},
                            {"code": "fr", "name": "French", "targets": ["en"]}])  # fmt: skip

    page.route("**/languages", both_ways)
    page.reload()
    page.get_by_label("Translate from").select_option("en")
    translate(page, "basa koti", "itok asab")
    page.get_by_role("button", name="Swap languages").click()
    expect(page.get_by_label("Text to translate")).to_have_value("itok asab")
    expect(page.get_by_label("Translate from")).to_have_value("fr")
    expect(page.get_by_label("Translate to")).to_have_value("en")
    # This server has no such model after all, and says so.
    expect(page.get_by_role("alert")).to_contain_text("no model for these two languages")


def test_the_language_is_found_out(page: Page) -> None:
    page.get_by_label("Translate from").select_option("auto")
    page.get_by_label("Text to translate").fill("Everybody wants to know where the children are.")
    expect(page.get_by_label("Translate from").locator("option").first).to_have_text(re.compile("English · detected"))


def test_a_language_that_the_server_does_not_know_is_not_called_found(page: Page) -> None:
    page.get_by_label("Translate from").select_option("auto")
    page.get_by_label("Text to translate").fill("مرحبا بالعالم، كيف حالك اليوم؟")
    expect(page.get_by_label("Translate from").locator("option").first).to_have_text("English · though unlikely")


def test_what_was_not_translated_cannot_be_looked_into(page: Page) -> None:
    page.get_by_label("Translate from").select_option("auto")
    page.get_by_label("Text to translate").fill("Le chat dort sur le canapé de la maison.")
    expect(page.get_by_label("Translate from").locator("option").first).to_have_text("Already French")
    page.get_by_role("tab", name="Look inside").click()
    expect(page.locator("#inside-hint")).to_have_text("There is no translation to look into.")


def test_looking_inside_draws_the_sentence_and_a_link_leads_back_to_it(page: Page) -> None:
    translate(page, "basa koti", "itok asab")
    page.get_by_role("tab", name="Look inside").click()
    expect(page.locator("#inside .inspector")).to_contain_text("itok asab")
    page.get_by_role("tab", name="Probabilities").click()
    page.reload()
    expect(page.locator("#inside .inspector")).to_contain_text("itok asab")
    expect(page.get_by_role("tab", name="Probabilities")).to_have_attribute("aria-selected", "true")


def test_a_heads_vectors_are_asked_for_where_a_sentence_is_too_long_to_carry_them(page: Page) -> None:
    def without_vectors(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        route.fulfill(json=told | {"vectors": None} if "version" in told else told)

    page.route("**/inspect", without_vectors)
    translate(page, "basa koti", "itok asab")
    page.get_by_role("tab", name="Look inside").click()
    page.get_by_role("tab", name="Step by step").click()
    expect(page.locator("#inside .softmax tbody tr").first).to_be_visible()


def test_a_second_sentence_is_looked_into_and_the_page_saves_itself(page: Page, tmp_path: Path) -> None:
    translate(page, "basa koti", "itok asab")
    page.get_by_role("tab", name="Look inside").click()
    page.get_by_role("tab", name="Compare").click()
    page.get_by_label("Second sentence").fill("basa rimo")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#inside .sentence-pair .target").nth(1)).to_have_text("omir asab")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save as HTML").click()
    saved = tmp_path / "attention.html"
    downloading.value.save_as(saved)
    alone = page.context.new_page()
    alone.goto(saved.as_uri())
    expect(alone.locator("header .target")).to_have_text("itok asab")
    expect(alone.get_by_role("tab", name="Compare")).to_be_visible()
