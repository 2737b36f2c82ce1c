"""Which word came from which, on a language that is read backwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv import Translator
from qkv.search.sample import Sampling
from tests import toy

SOURCES = [source for source, _ in toy.held_out()[:20]]


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run)


def test_nothing_is_aligned_unless_it_is_asked_for(translator: Translator) -> None:
    assert translator.translate(["basa kodu"])[0].alignment is None


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 4, "alternatives": 2}, {"sampling": Sampling(top_k=1)}])
def test_every_translation_is_aligned_in_words_of_its_own(translator: Translator, how: dict[str, object]) -> None:
    for source, best in zip(SOURCES, translator.translate(SOURCES, align=True, **how), strict=True):  # type: ignore[arg-type]
        for one in (best, *best.alternatives):
            assert one.alignment is not None
            assert [source[slice(*span)] for span in one.alignment.source] == source.split()
            assert [one.text[slice(*span)] for span in one.alignment.target] == one.text.split()
            assert {link.target for link in one.alignment.links} <= {*range(len(one.text.split()))}
            assert all(0 < link.weight <= 1.001 for link in one.alignment.links)


def test_aligning_changes_no_translation(translator: Translator) -> None:
    plain, aligned = translator.translate(SOURCES), translator.translate(SOURCES, align=True)
    assert [one.text for one in plain] == [one.text for one in aligned]
    assert [one.score for one in plain] == pytest.approx([one.score for one in aligned], rel=1e-4)


def test_given_translations_are_aligned_like_found_ones(translator: Translator) -> None:
    found = translator.translate(SOURCES, beam=1, align=True)
    given = translator.score(SOURCES, [one.text for one in found], align=True)
    assert [str(one.alignment) for one in given] == [str(one.alignment) for one in found]
