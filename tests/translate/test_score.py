"""Scores of given translations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from qkv import Translation, Translator
from qkv.errors import ConfigError
from tests import toy
from tests.translate.made import untrained

SOURCES = [source for source, _ in toy.held_out()[:20]]


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run)


@pytest.mark.parametrize("penalty", [0.0, 0.6])
def test_a_translation_that_was_found_has_the_score_that_it_was_found_with(
    translator: Translator, penalty: float
) -> None:
    """All of an n-best list, but for texts that the tokenizer cuts otherwise than the model wrote them."""
    searched = translator.translate(SOURCES, alternatives=3, length_penalty=penalty)
    found = [
        (source, one) for source, best in zip(SOURCES, searched, strict=True) for one in (best, *best.alternatives)
    ]
    scored = translator.score([source for source, _ in found], [one.text for _, one in found], length_penalty=penalty)
    alike = [(ours, theirs) for ours, (_, theirs) in zip(scored, found, strict=True) if ours.tokens == theirs.tokens]
    assert len(alike) > 60
    for ours, theirs in alike:
        assert (ours.text, ours.complete) == (theirs.text, True)
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-4)
        assert ours.token_scores == pytest.approx(theirs.token_scores, abs=1e-4)
        assert ours.score == pytest.approx(ours.log_probability / ((5 + len(ours.tokens)) / 6) ** penalty)


def test_what_is_beside_a_pair_changes_nothing(translator: Translator) -> None:
    targets = [source[::-1] for source in SOURCES]
    together = translator.score(SOURCES, targets)
    for one, source, target in zip(together[:5], SOURCES, targets, strict=False):
        (alone,) = translator.score([source], [target])
        assert alone.text == one.text
        assert alone.token_scores == pytest.approx(one.token_scores, abs=1e-4)


def test_the_right_translation_is_likelier_than_another(translator: Translator) -> None:
    right = translator.score(SOURCES, [source[::-1] for source in SOURCES])
    wrong = translator.score(SOURCES, [source[::-1] for source in reversed(SOURCES)])
    assert sum(one.score > other.score for one, other in zip(right, wrong, strict=True)) >= len(SOURCES) - 1


def test_an_empty_target_is_the_end_alone_and_an_empty_source_has_no_other_translation(translator: Translator) -> None:
    short, nothing, impossible = translator.score(["basa", "", " "], ["", "\t", "asab"])
    assert (short.text, short.tokens, short.complete) == ("", ("</s>",), True)
    assert short.score < 0
    assert nothing == Translation("", 0.0, complete=True)
    assert (impossible.text, impossible.score) == ("asab", -math.inf)


def test_a_target_beyond_what_can_be_read_is_cut_with_a_warning(toy_data: Path) -> None:
    warnings: list[str] = []
    nonsense = untrained(toy_data, warnings, longest_source=6)
    long = "asab udok asen omul itir"
    cut, whole = nonsense.score(["basa", "basa"], [long, "asab"])
    tokens = len(nonsense.tokenizer.encode(long))
    assert warnings == [f"a translation of {tokens} tokens ({long[:30]!r}…) is cut: only 6 of them are scored"]
    assert (cut.complete, len(cut.tokens)) == (False, 6)
    assert whole.complete


def test_sources_without_targets_are_told(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="there are 1 targets for 2 sources; give one for each"):
        translator.score(["basa", "kodu"], ["asab"])
    with pytest.raises(TypeError, match="targets is a list of texts"):
        translator.score(["basa"], "asab")


def test_progress_counts_every_pair(translator: Translator) -> None:
    counted: list[int] = []
    translator.score(["basa", "", "kodu"], ["asab", "", "udok"], progress=counted.append)
    assert sum(counted) == 3
