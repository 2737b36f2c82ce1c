"""What the inspector shows is held against numpy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.browser.inspector.inspections import TIRED, inspection, packed, unpacked, weights
from tests.browser.inspector.mounted import plain, show, shown, status

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_word_is_drawn_with_what_it_looks_at(page: Page, tired: dict[str, Any]) -> None:
    show(page, tired, at="i.use=encoder&i.layer=1&i.head=2&i.unit=tokens&i.query=4")
    row = unpacked(tired["attention"]["encoder"])[1, 2, 4]
    texts = [token["text"].replace("▁", "") for token in tired["source"]["tokens"]]
    best = int(row.argmax())
    assert status(page) == f"{texts[4]} looks at {texts[best]} with {100 * row[best]:.0f} %"
    slider = page.get_by_role("slider")
    assert f"{texts[4]} looks at {texts[best]}" in (slider.get_attribute("aria-valuetext") or "")
    assert page.locator(".lines path").count() >= int((unpacked(tired["attention"]["encoder"])[1, 2] >= 0.04).sum())


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_means_maxima_words_and_rollout_are_those_of_numpy(page: Page, tired: dict[str, Any], use: str) -> None:
    show(page, tired)
    read = page.evaluate(
        """async ([inspection, use]) => {
      const {reading} = await import("/readings.js");
      const data = reading(inspection);
      const numbers = (head, unit) => Array.from(data.matrix(use, 1, head, unit).values);
      return {mean: numbers("mean", "tokens"), max: numbers("max", "tokens"), rollout: numbers("rollout", "tokens"),
        words: numbers(0, "words"), most: numbers("max", "words"),
        queries: data.queries(use, "words"), keys: data.keys(use, "words")};
    }""",
        [tired, use],
    )
    heads = {name: unpacked(packed) for name, packed in tired["attention"].items()}
    here = heads[use][1]
    shape = here.shape[1:]
    assert np.allclose(np.reshape(read["mean"], shape), here.mean(0), atol=1e-6)
    assert np.allclose(np.reshape(read["max"], shape), here.max(0), atol=1e-6)
    assert np.allclose(np.reshape(read["rollout"], shape), rollout(heads, use), atol=1e-5)
    words = np.stack([merged(head, read["queries"], read["keys"]) for head in here])
    assert np.allclose(np.reshape(read["words"], words.shape[1:]), words[0], atol=1e-5)
    assert np.allclose(np.reshape(read["most"], words.shape[1:]), words.max(0), atol=1e-5)
    assert np.allclose(words.sum(-1), 1, atol=1e-2)


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_the_equation_is_worked_out_with_the_models_numbers(page: Page, tired: dict[str, Any], use: str) -> None:
    show(page, tired, at=f"i.view=equation&i.use={use}&i.layer=1&i.head=1&i.query=5&i.key=3")
    query, key = (unpacked(tired["vectors"][use][name])[1, 1] for name in ("q", "k"))
    score = float(query[5] @ key[3])
    share = weights(query, key, causal=use == "decoder")[5, 3]
    results = [plain(text) for text in page.locator(".result").all_inner_texts()]
    assert results[0] == f"q · k = {score:.2f}"
    assert results[1] == f"{score:.2f} / 2.00 = {score / 2:.2f}"
    assert results[2].endswith(f"= {shown(share)}")
    assert page.locator(".softmax tbody tr").count() == (6 if use == "decoder" else len(key))
    given, by = (shown(number) for number in (unpacked(tired["attention"][use])[1, 1, 5, 3], share))
    assert f"{given}; worked out from the vectors: {by}" in plain(page.locator(".check").inner_text())


def test_vectors_of_a_long_sentence_are_asked_for(page: Page, tired: dict[str, Any]) -> None:
    bare = inspection(*TIRED, vectors=False)
    show(page, bare, at="i.view=equation")
    assert "carries no vectors" in page.locator(".problem:not(:empty)").inner_text()
    parts = {
        name: {"shape": part["shape"][2:], "data": part["data"]} for name, part in tired["vectors"]["encoder"].items()
    }
    show(page, bare, at="i.view=equation&i.use=encoder&i.query=5&i.key=3", heads={"encoder": parts})
    query, key = (unpacked(tired["vectors"]["encoder"][name])[0, 0] for name in ("q", "k"))
    assert plain(page.locator(".result").first.inner_text()) == f"q · k = {float(query[5] @ key[3]):.2f}"


def test_learned_positions_show_which_are_alike(page: Page, tired: dict[str, Any]) -> None:
    vectors = np.eye(24, 12, dtype=np.float32) + 0.1
    vectors[7] = vectors[3] + [0.01] * 12
    learned = {**tired, "model": {**tired["model"], "positions": "learned"}, "positions": packed(vectors)}
    show(page, learned, at="i.view=positions&i.use=encoder")
    page.get_by_role("slider", name="Position").fill("3")
    cosine = vectors[3] @ vectors[7] / np.linalg.norm(vectors[3]) / np.linalg.norm(vectors[7])
    said = plain(page.locator(".positions .result").inner_text())
    assert f"position 3: most like position 7, cosine {cosine:.2f}" in said
    assert page.get_by_role("img", name="Learned vectors of 24 positions").is_visible()
    # A file of an older export has none.
    show(page, {**learned, "positions": None}, at="i.view=positions&i.use=encoder")
    assert page.get_by_role("heading", name="Learned positions").is_visible()


def test_two_sentences_show_what_changes_for_it(page: Page, tired: dict[str, Any], wide: dict[str, Any]) -> None:
    show(page, tired, wide, at="i.view=compare&i.use=encoder&i.layer=1&i.head=0")
    assert page.locator(".comparison mark").all_inner_texts() == ["tired", "es", "müde", "wide", "sie", "breit"]
    assert page.locator(".written").inner_text() == "es / sie"
    rows = page.locator(".beside").last.locator("tbody tr")
    at = next(at for at, word in enumerate(tired["source"]["words"]) if word["text"] == "animal")
    place = next(word["tokens"][0] for word in tired["source"]["words"] if word["text"] == "it")
    span = tired["source"]["words"][at]["tokens"]
    both = [float(unpacked(each["attention"]["encoder"])[1, 0, place, slice(*span)].sum()) for each in (tired, wide)]
    told = plain(rows.nth(at).inner_text())
    assert all(shown(share) in told for share in both), (told, both)
    assert "tired / wide" in page.locator(".beside").last.inner_text()
    page.get_by_role("button", name=re.compile("^Layer")).first.click()
    assert page.get_by_role("button", pressed=True).count() == 1


def rollout(heads: dict[str, Any], use: str) -> Any:
    """By the book: half of each layer is the residual connection; cross attention follows the decoder's stream."""

    def through(layers: Any) -> Any:
        whole = np.eye(layers.shape[-1])
        for layer in layers.mean(1):
            whole = (layer + np.eye(len(layer))) / 2 @ whole
        return whole

    if use != "cross":
        return through(heads[use])
    memory = through(heads["encoder"])
    stream = np.zeros(heads["cross"].shape[-2:])
    for own, across in zip(heads["decoder"].mean(1), heads["cross"].mean(1), strict=True):
        stream = (own + np.eye(len(own))) / 2 @ stream
        stream = stream / 2 + across @ memory / 2
    return stream / stream.sum(-1, keepdims=True)


def merged(head: Any, queries: list[dict[str, int]], keys: list[dict[str, int]]) -> Any:
    columns = np.stack([head[:, key["start"] : key["end"]].sum(-1) for key in keys], -1)
    return np.stack([columns[query["start"] : query["end"]].mean(0) for query in queries])
