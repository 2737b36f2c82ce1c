"""Several translators as one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qkv import Translator
from qkv.errors import ConfigError
from qkv.training import train_prepared
from tests import toy
from tests.translate.made import untrained

SOURCES = [source for source, _ in toy.held_out()[:6]]


def test_a_run_twice_translates_as_it_does_alone(toy_run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(toy_run, tmp_path / "again")
    alone, together = Translator.load(toy_run), Translator.load(toy_run, again)
    for one, other in zip(alone.translate(SOURCES), together.translate(SOURCES), strict=True):
        assert one.text == other.text
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)


def test_two_that_disagree_find_what_neither_would(toy_data: Path) -> None:
    one, other = untrained(toy_data, seed=1), untrained(toy_data, seed=2)
    together = Translator.joined({"one": one, "other": other})
    texts = [[found.text for found in some.translate(SOURCES, beam=2)] for some in (one, other, together)]
    assert texts[2] not in texts[:2]
    (scored,), (first,), (second,) = (some.score(["basa"], ["asab"]) for some in (together, one, other))
    assert scored.tokens == first.tokens
    assert min(first.score, second.score) < scored.score < max(first.score, second.score)


def test_runs_that_do_not_fit_together_are_told(toy_run: Path, toy_data: Path, tmp_path: Path) -> None:
    train_prepared(toy_data, tmp_path / "other", toy.QUICK.with_changes(training={"steps": 1}))
    with pytest.raises(ConfigError) as told:
        Translator.load(toy_run, tmp_path / "other")
    assert str(told.value) == (
        f"{tmp_path / 'other'} has not the same vocabulary as {toy_run}, so they cannot translate together; train it "
        f"with --tokenizer {toy_run}/tokenizer.model"
    )
    with pytest.raises(ConfigError, match="one of left and right writes from right to left"):
        Translator.joined({"left": untrained(toy_data), "right": untrained(toy_data, right_to_left=True)})
