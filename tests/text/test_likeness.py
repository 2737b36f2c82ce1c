"""Sentence scores of each against each, against sacreBLEU's."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from qkv.text.likeness import LIKENESS

ORACLES: dict[str, Metric] = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}
PIECES = [
    "a",
    "b",
    "cat",
    " ",
    "  ",
    "1",
    "2",
    ".",
    ",",
    "-",
    "&amp;",
    "&lt;",
    "\n",
    "<",
    "é",
    "日",
    "_",
    "'",
    '"',
    "/",
    "<skipped>",
]


@pytest.mark.parametrize("name", LIKENESS)
@settings(max_examples=150)
@given(texts=st.lists(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), min_size=1, max_size=5))
def test_each_against_each_is_what_sacrebleu_says(name: str, texts: list[str]) -> None:
    expected = [[ORACLES[name].sentence_score(text, [reference]).score for reference in texts] for text in texts]
    np.testing.assert_allclose(LIKENESS[name](texts), expected, atol=1e-9)


@pytest.mark.parametrize("name", LIKENESS)
def test_texts_with_more_in_them_than_is_compared_at_once_score_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices("abcde ", k=90)) for _ in range(6)]
    expected = LIKENESS[name](texts)
    monkeypatch.setattr("qkv.text.likeness._BLOCK", 7)
    np.testing.assert_allclose(LIKENESS[name](texts), expected)


@pytest.mark.parametrize("name", LIKENESS)
def test_many_long_samples_are_compared_in_no_time(name: str) -> None:
    """Sixty-four of twenty-five words, which differ from one another as samples do; sacreBLEU takes seconds."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=5)) for _ in range(60)]
    texts = [" ".join(draw.choices(words, k=25)) for _ in range(64)]
    begun = time.process_time()
    LIKENESS[name](texts)
    assert time.process_time() - begun < 1.0
