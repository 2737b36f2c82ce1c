"""Choosing, walking by keys and pointer, and what the address keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.browser.inspector.inspections import inspection, unpacked
from tests.browser.inspector.mounted import plain, show, shown, status

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_every_use_layer_head_and_summary_can_be_chosen(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired)
    for use, name in (("encoder", "Encoder self"), ("decoder", "Decoder self"), ("cross", "Encoder-decoder")):
        page.locator(f"input[value={use}] + span").click()
        assert page.get_by_role("radio", name=re.compile("^Layer|^Rollout")).count() == 2 * (3 + 3)
        page.get_by_role("radio", name=re.compile("^Layer 2, maximum")).click()
        assert page.get_by_role("heading", name=re.compile(f"^{name}.*layer 2, maximum of heads")).is_visible()
    page.locator(".heads [aria-checked=true]").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("heading", name=re.compile("layer 1, mean of heads")).is_visible()


def test_keys_alone_walk_from_a_word_to_its_equation(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.use=encoder&i.layer=0&i.head=0&i.unit=words&i.query=0")
    while page.evaluate("document.activeElement.getAttribute('role')") != "slider":
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowDown")
    assert status(page).startswith("animal looks at")
    page.keyboard.press("]")
    page.keyboard.press("3")
    assert page.get_by_role("heading", name="layer 2, head 3").is_visible()
    page.keyboard.press("m")
    assert page.get_by_role("heading", name="mean of heads").is_visible()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", name="Step by step").get_attribute("aria-selected") == "true"
    page.get_by_role("tab", name="Step by step").focus()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("slider").is_visible()


def test_the_matrix_is_walked_by_keys_and_told_by_pointer(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.as=matrix&i.use=encoder&i.layer=0&i.head=0&i.unit=tokens&i.query=1&i.key=1")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    row = unpacked(tired["attention"]["encoder"])[0, 0, 1]
    assert status(page) == f"anima looks at l with {shown(row[2])}"
    canvas = page.locator(".field canvas")
    box = canvas.bounding_box()
    assert box is not None
    size = len(tired["source"]["tokens"])
    page.mouse.move(box["x"] + 0.5 * box["width"] / size, box["y"] + 3.5 * box["height"] / size)
    weight = unpacked(tired["attention"]["encoder"])[0, 0, 3, 0]
    assert plain(page.locator(".tip").inner_text()) == f"didn' → The {shown(weight)}"
    painted = canvas.evaluate("(canvas) => canvas.getContext('2d').getImageData(0, 3, 1, 1).data[3]")
    assert painted == pytest.approx(255 * float(weight) ** 0.5, abs=1.5)


def test_the_search_tells_what_was_dropped_and_why(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.view=search")
    assert page.locator(".tree .node").count() == len(tired["search"]["nodes"])
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".told .sentence").inner_text() == "Das Tier"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "2 others were likelier" in page.locator(".told").inner_text()
    page.get_by_label("Hide what was dropped").check()
    assert page.locator(".tree .node.dropped:visible").count() == 0


def test_probabilities_name_the_runners_up(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.view=probabilities")
    rows = page.locator(".probabilities tbody tr")
    assert rows.count() == len(tired["target"]["tokens"])
    assert plain(rows.nth(1).inner_text()).split() == ["2", "Tier", "70", "%", "Katze", "20", "%", "sie", "5.0", "%"]


def test_what_is_looked_at_is_in_the_address(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="text=kept")
    page.locator("input[value=cross] + span").click()
    page.get_by_role("combobox", name="Layer").select_option("0")
    page.locator("input[value=matrix] + span").click()
    address = page.evaluate("location.hash")
    assert "text=kept" in address
    before = status(page)
    show(page, tired, at=address.removeprefix("#"))
    assert page.get_by_role("application").is_visible()
    assert status(page) == before
    page.goto("/#i.as=lines")
    assert page.get_by_role("slider").is_visible()


def test_an_address_of_a_longer_sentence_shows_the_nearest(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.use=cross&i.layer=40&i.head=90&i.query=900&i.key=900&i.view=nothing&i.as=else")
    assert "</s> looks at </s>" in status(page)
    show(page, tired, at="i.use=%3Cscript%3E&i.layer=-1&i.head=toString&i.query=it&i.key=1e9&i.unit=")
    assert status(page).startswith("it looks at ")


def test_text_from_right_to_left_has_its_columns_so(page: Page) -> None:
    arabic = inspection("لم يعبر الشارع لأنه كان", "It did not cross .")
    show(page, arabic, at="i.as=matrix&i.use=encoder&i.unit=words&i.query=0&i.key=0")
    labels = page.locator(".column-labels span").all_inner_texts()
    assert labels == ["</s>", "كان", "لأنه", "الشارع", "يعبر", "لم"]
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowLeft")
    assert "looks at يعبر" in status(page)
    assert page.locator("header .source").evaluate("(text) => getComputedStyle(text).direction") == "rtl"


def test_marks_do_not_hide_that_text_runs_from_right_to_left(page: Page) -> None:
    """What the decoder reads begins with <s>, and many a source with <to:ar>: neither is a word."""
    show(page, inspection("It did", "لم يعبر"), at="i.as=matrix&i.use=decoder")
    assert page.locator(".column-labels span").all_inner_texts() == ["يعبر", "لم", "<s>"]


def test_what_nobody_would_see_is_called_by_its_number(page: Page) -> None:
    show(page, inspection("It \u202e did \u200d", "Es tat"), at="i.as=matrix&i.use=encoder")
    labels = page.locator(".row-labels span").all_inner_texts()
    assert labels == ["It", "U+202E", "did", "U+200D", "</s>"]


def test_what_looks_most_at_a_word_stands_for_it_where_nothing_is_aligned(
    page: Page, tired: dict[str, Any], wide: dict[str, Any]
) -> None:
    nothing = [{**one, "alignment": [[] for _ in one["alignment"]]} for one in (tired, wide)]
    show(page, *nothing, at="i.view=compare&i.use=encoder")
    expected = []
    for one in nothing:
        looks = unpacked(one["attention"]["cross"]).mean((0, 1))
        it = next(word["tokens"] for word in one["source"]["words"] if word["text"] == "it")
        words = one["target"]["words"]
        shares = [looks[slice(*word["tokens"]), slice(*it)].sum(-1).mean() for word in words]
        expected.append(words[int(np.argmax(shares))]["text"])
    assert page.locator(".written").inner_text() == " / ".join(expected)
    assert page.get_by_text("No word is aligned with it").is_visible()


def test_a_second_sentence_can_be_typed(page: Page, tired: dict[str, Any], wide: dict[str, Any]) -> None:
    show(page, tired, at="i.view=compare", second=wide)
    typed = page.get_by_label("Second sentence")
    assert typed.input_value() == wide["source"]["text"]
    typed.fill("Nonsense")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").filter(has_text="No model for Nonsense").is_visible()
    typed.fill(wide["source"]["text"])
    page.get_by_role("button", name="Compare").click()
    assert page.locator(".written").inner_text() == "es / sie"


def test_the_heads_that_look_most_at_each_word_are_offered(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.use=encoder&i.unit=words")
    words = tired["source"]["words"]
    it = next(at for at, word in enumerate(words) if word["text"] == "it")
    looks = unpacked(tired["attention"]["encoder"])[:, :, slice(*words[it]["tokens"])].mean(2)
    shares = np.stack([looks[..., slice(*word["tokens"])].sum(-1) for word in words], -1)
    shares[..., it] = 0
    best = sorted(range(len(words)), key=lambda at: -shares[..., at].max())[:4]
    offered = page.get_by_role("group", name="What it looks at in any head").get_by_role("button")
    for place, at in enumerate(best):
        layer, head = np.unravel_index(shares[..., at].argmax(), shares.shape[:2])
        told = f"{words[at]['text']} {shown(float(shares[..., at].max()))} layer {layer + 1}, head {head + 1}"
        assert plain(offered.nth(place).inner_text()) == told
    offered.nth(1).click()
    assert status(page).startswith(
        f"it looks at {words[best[1]]['text']} with {shown(float(shares[..., best[1]].max()))}"
    )
