"""A run's page in a real browser: as a file, and live."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from qkv import pages
from qkv.run import RunDirectory
from qkv.watching.run import Watched
from qkv.watching.server import WatchServer
from tests.toy import Command

pytest.importorskip("playwright", reason="no playwright here: make setup installs it")
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.judging import Judge


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Whatever a page complains of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert faults == []


def test_a_saved_page_shows_curves_samples_and_attention(
    page: Page, command: Command, toy_run: Path, tmp_path: Path, judge: Judge
) -> None:
    saved = tmp_path / "run.html"
    command("watch", toy_run, "--html", saved)
    page.goto(saved.as_uri())
    expect(page.get_by_text("Finished at step 300 of 300")).to_be_visible()
    for title in ("Loss", "Validation BLEU", "Learning rate", "Speed"):
        assert page.get_by_role("img", name=title).locator("path.curve").count() >= 1
    rects = page.locator("rect.weight")
    before = rects.evaluate_all("(all) => all.map((one) => one.getAttribute('fill-opacity'))")
    page.get_by_role("slider", name="Checkpoint of").press("Home")
    expect(page.get_by_text("step 100", exact=True).first).to_be_visible()
    assert rects.evaluate_all("(all) => all.map((one) => one.getAttribute('fill-opacity'))") != before
    # The same by its picture.
    page.get_by_role("group", name="Checkpoints").get_by_role("button", name="Step 300").click()
    assert rects.evaluate_all("(all) => all.map((one) => one.getAttribute('fill-opacity'))") == before
    assert page.get_by_role("row").filter(has_text="as a person said it").count() == 1
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        assert judge(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_samples_of_several_directions_say_which_they_are_of(page: Page, toy_run: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run.html"
    told = Watched(toy_run).told()
    ways = [("en", "fr"), ("fr", "en"), ("en", "de")]
    for sample, (source, target) in zip(told["samples"][-1]["sentences"], ways, strict=True):
        sample |= {"from": source, "to": target}
    saved.write_text(pages.page(pages.FOLDER / "watch", "run", told))
    page.goto(saved.as_uri())
    assert [page.get_by_role("cell", name=f"{source} → {target}").count() for source, target in ways] == [1, 1, 1]


def test_a_run_that_has_only_begun_says_what_will_come(page: Page, toy_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(toy_run, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints", "final", "log.jsonl"))
    saved = tmp_path / "run.html"
    with RunDirectory(run).held():
        saved.write_text(pages.page(pages.FOLDER / "watch", "run", Watched(run).told()))
    page.goto(saved.as_uri())
    expect(page.get_by_text("Training begins; nothing is reported yet")).to_be_visible()
    expect(page.get_by_text("come with the first validation, after step 100.")).to_be_visible()
    assert page.get_by_text("not reported yet").count() == 4
    assert page.get_by_role("heading", name="Samples").count() == 0


def test_a_run_that_was_stopped_says_why(page: Page, toy_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(toy_run, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints", "final"))
    saved = tmp_path / "run.html"
    for report, told in [({}, "no process is training it now"), ({"why": "the memory is full"}, "the memory is full")]:
        with (run / "log.jsonl").open("a") as log:
            log.write(json.dumps({"kind": "stopped" if report else "other", "step": 300, **report}) + "\n")
        saved.write_text(pages.page(pages.FOLDER / "watch", "run", Watched(run).told()))
        page.goto(saved.as_uri())
        expect(page.get_by_text(f"Stopped at step 300 of 300 · {told}")).to_be_visible()


def test_a_live_page_grows_with_the_run_and_says_when_nobody_answers(page: Page, toy_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(toy_run, tmp_path / "run")
    with WatchServer(Watched(run), 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        page.goto(server.url)
        expect(page.get_by_text("Finished at step 300 of 300")).to_be_visible()
        page.get_by_role("cell").first.evaluate("(one) => getSelection().selectAllChildren(one)")
        selected = page.evaluate("String(getSelection())")
        setback = {"kind": "rollback", "step": 300, "from_step": 340, "rate_factor": 0.5, "reason": "the loss rose"}
        with RunDirectory(run).held():
            with (run / "log.jsonl").open("a") as log:
                for line in ({"kind": "train", "step": 350, "loss": 0.5}, setback):
                    log.write(json.dumps(line) + "\n")
            expect(page.get_by_text("Step 350 of 300 · about 0 s left · last report")).to_be_visible()
        expect(page.get_by_text("Went back from step 340 to 300, with 0.5 of the learning rate")).to_be_visible()
        # Whoever copies a sample is not disturbed.
        assert selected and page.evaluate("String(getSelection())") == selected
        expect(page.get_by_text("Finished at step 350 of 300")).to_be_visible()
        server.shutdown()
        thread.join()
    expect(page.get_by_text("qkv watch has ended")).to_be_visible()
    expect(page.get_by_text("at step 350 of 300")).to_be_visible()
