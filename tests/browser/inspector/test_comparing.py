"""Two sentences side by side: what is said of the word that both have."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.inspector.inspections import TIRED, WIDE, inspection
from tests.browser.inspector.mounted import plain, show

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_it_is_told_whether_the_word_changes_and_what_a_person_writes(
    page: Page, tired: dict[str, Any], wide: dict[str, Any]
) -> None:
    verdict = page.locator(".verdict")
    show(page, tired, wide, at="i.view=compare&i.use=encoder")
    assert plain(verdict.inner_text()).startswith("The word changes: es becomes sie. A person writes es for the animal")
    assert "so does this model" in verdict.inner_text()
    same = inspection(WIDE[0], WIDE[1].replace("sie", "es"), seed=2)
    first = copy.deepcopy(tired)
    for one, share in ((first, 0.6), (same, 0.5)):
        place = next(word["tokens"][0] for word in one["target"]["words"] if word["text"] == "es")
        one["probabilities"][place]["probability"] = share
    show(page, first, same, at="i.view=compare&i.use=encoder")
    assert "The word stays the same; with wide the model is less sure of it (60 % and 50 %)." in plain(
        verdict.inner_text()
    )
    assert "this model does not tell them apart here" in verdict.inner_text()


def test_what_is_compared_can_be_seen_in_other_languages_and_is_saved_so(
    page: Page, tired: dict[str, Any], wide: dict[str, Any], tmp_path: Path
) -> None:
    texts = [(TIRED[0], "L’ animal car il est las ."), (WIDE[0], "L’ animal car elle est large .")]
    french = [{**inspection(*both), "to": "fr"} for both in texts]
    for one in french:
        it = next(at for at, word in enumerate(one["source"]["words"]) if word["text"] == "it")
        one["alignment"] = [[it] if word["text"] in ("il", "elle") else [] for word in one["target"]["words"]]
    show(page, tired, wide, at="i.view=compare&i.use=encoder", others={"de": [], "fr": french})
    page.get_by_role("button", name="The same in French").click()
    section = page.get_by_role("heading", name="In French").locator("..")
    assert section.locator(".written").inner_text() == "il / elle"
    assert page.get_by_role("button", name="The same in").count() == 0
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save as HTML").click()
    saved = tmp_path / "both.html"
    downloading.value.save_as(saved)
    alone = page.context.new_page()
    alone.goto(f"{saved.as_uri()}#i.view=compare&i.use=encoder")
    assert alone.get_by_role("heading", name="In French").is_visible()
