"""How the inspector looks, to the eye and to axe-core, and what is saved of it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.browser.inspector.conftest import MODULES
from tests.browser.inspector.inspections import inspection, packed, unpacked
from tests.browser.inspector.mounted import VIEWS, show, status
from tests.browser.judging import Judge

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_lines_end_at_the_middle_of_their_words(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.use=cross&i.unit=tokens")
    ends = page.evaluate("""() => {
      const middle = (box) => box.y + box.height / 2;
      const words = [...document.querySelectorAll(".lines text[text-anchor=start]")]
        .map((text) => middle(text.getBoundingClientRect()));
      const svg = document.querySelector(".lines svg").getBoundingClientRect();
      return [...document.querySelectorAll(".lines path")].map((path) => {
        const end = path.getPointAtLength(path.getTotalLength());
        return Math.min(...words.map((word) => Math.abs(word - svg.y - end.y)));
      });
    }""")
    assert max(ends) < 3


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_words_lines_and_figures_find_room_beside_each_other(page: Page, width: int) -> None:
    long = inspection("The Donaudampfschifffahrt was incomprehensible .", "La compagnie de navigation .")
    attention = np.zeros_like(unpacked(long["attention"]["cross"]))
    attention[..., 1] = 1
    long["attention"]["cross"] = packed(attention)
    page.set_viewport_size({"width": width, "height": 800})
    show(page, long, at="i.use=cross&i.unit=words")
    assert "with 100 %" in status(page)
    box = "(all) => all.map((one) => one.getBoundingClientRect()).map(({left, right}) => [left, right])"
    names = ("text[text-anchor=start]:not(.heading)", "text.value", "rect.fill")
    words, figures, bars = (page.locator(f".lines {name}").evaluate_all(box) for name in names)
    ((_, right),) = page.locator(".lines").evaluate_all(box)
    assert all(end <= right + 0.5 for _, end in figures), (figures, right)
    assert max(end for _, end in words) <= min(start for start, _ in bars)
    assert all(end - start >= 20 for start, end in bars)


def test_a_hundred_tokens_of_six_layers_stay_usable(page: Page) -> None:
    text = " ".join(f"word{at}" if at % 3 else "understanding" for at in range(74))
    long = inspection(text, text, layers=6, heads=8, key_width=4, vectors=False)
    assert len(long["source"]["tokens"]) >= 100
    beyond = """() => {
      const [one, all] = [".cell", ".matrix"].map((name) => document.querySelector(name).getBoundingClientRect());
      return Math.max(one.bottom - all.bottom, one.right - all.right, all.left - one.left, all.top - one.top);
    }"""
    # What a link names is seen at once, and what keys choose, too.
    show(page, long, at="i.as=matrix&i.unit=tokens&i.query=90&i.key=80")
    assert page.evaluate(beyond) <= 1
    page.get_by_role("application").focus()
    page.keyboard.press("Home")
    assert page.evaluate(beyond) <= 1
    # However long the picture is, what is said of it stays on the screen.
    show(page, long, at="i.as=lines&i.unit=tokens&i.query=0")
    page.evaluate("document.querySelector('.lines').scrollIntoView()")
    assert page.locator(".status").evaluate("(one) => one.getBoundingClientRect().bottom <= innerHeight")
    for view in VIEWS[:-1]:
        page.locator(f"#inspector-tab-{view}").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 1280)])
def test_axe_finds_nothing(
    page: Page, judge: Judge, tired: dict[str, Any], wide: dict[str, Any], scheme: Any, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    show(page, tired, wide)
    for view in VIEWS:
        page.locator(f"#inspector-tab-{view}").click()
        assert judge(page) == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    page.locator("#inspector-tab-attention").click()
    page.locator("input[value=matrix] + span").click()
    page.locator("summary").click()
    assert judge(page) == []


def test_a_change_of_theme_repaints(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.as=matrix&i.use=encoder")
    ink = "() => String(document.querySelector('.field canvas').getContext('2d').getImageData(0, 0, 1, 1).data)"
    light = page.evaluate(ink)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => ({ink})() !== light", arg=light)


def test_pictures_are_saved_and_the_saved_page_needs_no_network(
    browser: Browser, page: Page, tired: dict[str, Any], wide: dict[str, Any], tmp_path: Path
) -> None:
    show(page, tired, wide, at="i.use=cross&i.layer=1&i.head=1")

    def saved(kind: str, where: Page = page) -> Path:
        with where.expect_download() as waiting:
            where.get_by_role("button", name=f"Save as {kind}").click()
        path: Path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path

    drawing = saved("SVG")
    assert drawing.name == "cross-layer2-head2.svg"
    assert "hinüber" in drawing.read_text(encoding="utf-8")
    assert saved("PNG").read_bytes().startswith(b"\x89PNG")
    said = status(page)
    alone = browser.new_context(offline=True, accept_downloads=True)
    other = alone.new_page()
    faults: list[str] = []
    other.on("pageerror", lambda error: faults.append(str(error)))
    other.on("console", lambda message: faults.append(message.text))
    path = saved("HTML")
    # The second round opens what the saved page saved of itself.
    for _ in range(2):
        other.goto(f"{path.as_uri()}#i.use=cross&i.layer=1&i.head=1")
        assert status(other) == said
        other.get_by_role("tab", name="Compare").click()
        assert other.locator(".written").inner_text() == "es / sie"
        path = saved("HTML", other).rename(tmp_path / "again.html")
    assert faults == []
    alone.close()


def test_modules_can_be_joined_and_stay_small() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in MODULES.iterdir()}
    names = [
        name
        for text in texts.values()
        for name in re.findall(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
    ]
    assert sorted(names) == sorted(set(names)), "one script holds them all"
    assert not any("</script" in text for name, text in texts.items() if name.endswith(".js"))
    imports = [line for text in texts.values() for line in text.splitlines() if line.startswith("import")]
    assert all(re.fullmatch(r'import \{.*\} from "\./\w+\.js";', line) for line in imports)
    assert len(gzip.compress("".join(texts.values()).encode())) < 40_000
