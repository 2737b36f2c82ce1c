"""A run that writes the last word first: who translates does not notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv import Translator
from qkv.errors import ConfigError
from qkv.training import train
from qkv.translate import Controls, Rerank
from tests import toy

PAIRS = toy.held_out()[:30]
SOURCES = [source for source, _ in PAIRS]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("right-to-left")
    config = toy.LEARNS.with_changes(text={"right_to_left": True}, training={"steps": 120, "validate_every": 60})
    with toy.one_thread():
        train([toy.write_tsv(folder / "corpus.tsv", toy.pairs(1500))], folder / "run", config)
    return folder / "run"


@pytest.fixture(scope="module")
def backwards(run: Path) -> Translator:
    return Translator.load(run)


def test_it_translates_into_text_that_reads_from_left_to_right(backwards: Translator) -> None:
    found = backwards.translate(SOURCES)
    assert sum(one.text == target for one, (_, target) in zip(found, PAIRS, strict=True)) > len(PAIRS) / 2
    for one in found:
        assert "".join(one.tokens).replace("</s>", "").replace("▁", " ").strip() == one.text
        assert len(one.tokens) == len(one.token_scores)


def test_it_is_validated_by_such_text(run: Path) -> None:
    assert toy.reports(run, "validation")[-1]["bleu"] > 10


def test_what_it_found_has_the_score_that_it_was_found_with(backwards: Translator) -> None:
    found = backwards.translate(SOURCES)
    scored = backwards.score(SOURCES, [one.text for one in found])
    alike = [(ours, theirs) for ours, theirs in zip(scored, found, strict=True) if ours.tokens == theirs.tokens]
    assert len(alike) > len(PAIRS) / 2
    for ours, theirs in alike:
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert ours.token_scores == pytest.approx(theirs.token_scores, abs=1e-4)


def test_it_gives_a_second_opinion(toy_run: Path, backwards: Translator) -> None:
    found = Translator.load(toy_run).translate(SOURCES, rerank=Rerank(backwards, 0.3))
    assert sum(one.text == target for one, (_, target) in zip(found, PAIRS, strict=True)) > len(PAIRS) / 2


def test_what_it_cannot_do_is_told(backwards: Translator) -> None:
    with pytest.raises(ConfigError, match="its translations can neither be begun for it nor held to terms"):
        backwards.translate(["basa"], prefixes=["omul"])
    with pytest.raises(ConfigError, match="there is nothing to show before all is written"):
        backwards.stream("basa")
    assert backwards.translate(["basa"], controls=Controls(no_repeats_of=2))[0].text
