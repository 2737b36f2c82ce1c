"""What else a translation could have said, and how sure it is of each of its words."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from qkv.text.words import first_word
from qkv.translate import Translator


@pytest.fixture(scope="module")
def translator(exported: Path) -> Translator:
    return Translator.load(exported)


def test_continuations_begin_alike_and_go_on_with_different_words(translator: Translator) -> None:
    found = translator.continuations("basa koti rimo", "omir ", count=4)
    assert len(found) == 4
    assert all(one.text.startswith("omir ") for one in found)
    assert len({first_word(one.text[5:]) for one in found}) == 4
    # The one that the search would find by itself is the likeliest.
    assert found[0].text == translator.translate(["basa koti rimo"])[0].text == "omir itok asab"


def test_continuations_of_nothing_begin_with_different_words(translator: Translator) -> None:
    found = translator.continuations("basa koti", "", count=3)
    assert found[0].text == "itok asab"
    assert len({first_word(one.text) for one in found}) == 3


def test_a_prefix_that_ends_within_a_word_may_go_on_with_it(translator: Translator) -> None:
    assert translator.continuations("basa koti", "it", count=1)[0].text == "itok asab"


def test_an_empty_text_has_no_continuations(translator: Translator) -> None:
    assert translator.continuations("", "omir", count=3) == []


def test_the_words_of_a_translation_and_its_end_are_as_likely_as_all_of_it(translator: Translator) -> None:
    (one,) = translator.translate(["basa koti rimo"], align=True)
    assert one.alignment is not None
    assert [one.text[slice(*span)] for span in one.alignment.target] == ["omir", "itok", "asab"]
    assert len(one.word_scores) == 3
    assert math.isclose(sum(one.word_scores) + one.token_scores[-1], one.log_probability, rel_tol=1e-6)


@pytest.mark.parametrize("steps", [0, 5, 12])
def test_what_nobody_waits_for_any_more_is_given_up_at_the_next_step(translator: Translator, steps: int) -> None:
    asked = 0

    def abandoned() -> bool:
        nonlocal asked
        asked += 1
        return asked > steps

    assert translator.continuations("basa koti rimo", "omir " * 8, count=3, abandoned=abandoned) == []
    # Where a beam goes on, it asks for each of its sentences, six of them.
    assert asked <= steps + 6
