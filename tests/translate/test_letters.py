"""Text in capitals is translated as if it were not, into capitals."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv import Translator
from qkv.translate import Relay, Terms, translate_document
from tests import toy


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run, device="cpu")


@pytest.fixture(scope="module")
def sources() -> list[str]:
    """Of words of four letters and more, some of them."""
    return [source for source, _ in toy.held_out()[:20]]


def in_capitals(translator: Translator, sources: list[str]) -> list[str]:
    """What is expected: the toy language has no capitals, so what is read begins with a letter it does not know."""
    read = [translator._wording.read(source.upper()) for source in sources]
    return [one.text.upper() for one in translator.translate(read)]


def test_text_in_capitals_has_the_translation_of_its_words_in_capitals(
    translator: Translator, sources: list[str]
) -> None:
    found = [one.text for one in translator.translate([source.upper() for source in sources])]
    assert found == in_capitals(translator, sources)
    read = translator._wording.read(sources[0].upper())
    assert read[1:] == sources[0][1:]


def test_it_is_as_long_as_other_text(translator: Translator, sources: list[str]) -> None:
    read = translator._wording.read(sources[0].upper())
    assert translator.measure(sources[0].upper()) == translator.measure(read)


def test_a_stream_and_a_document_are_in_capitals_too(translator: Translator, sources: list[str]) -> None:
    source = sources[0].upper()
    (expected,) = (one.text for one in translator.translate([source], beam=1))
    assert expected == expected.upper() != expected.lower()
    assert "".join(translator.stream(source)) == expected
    document = translate_document(translator, f"{sources[0]}\n{source}")
    first, second = document.text.split("\n")
    assert first == translator.translate([sources[0]])[0].text == first.lower()
    assert second == second.upper()


def test_its_alignment_is_that_of_its_words(translator: Translator, sources: list[str]) -> None:
    (one,) = translator.translate([sources[0].upper()], align=True)
    assert one.alignment is not None
    assert one.alignment.target_text == one.text
    assert "".join(one.text[slice(*span)] for span in one.alignment.target) == "".join(one.text.split())
    assert len(one.alignment.source) == len(sources[0].split())


def test_a_translation_goes_on_as_it_was_begun(translator: Translator, sources: list[str]) -> None:
    target = translator.translate([sources[0]])[0].text
    word = target.split()[0]
    capitals, small = (
        translator.translate([sources[0].upper()], prefixes=[prefix])[0].text for prefix in (word.upper(), word)
    )
    assert capitals.startswith(word.upper())
    assert capitals == capitals.upper()
    assert small.startswith(word)
    assert small == small.lower()


def test_terms_stay_as_they_were_given(translator: Translator, sources: list[str]) -> None:
    source = f"{sources[0].upper()} {{name}}"
    (one,) = translator.translate([source], terms=[Terms(required=(("kodu",),), once=("{name}",))])
    assert "kodu" in one.text
    assert "{name}" in one.text
    others = one.text.replace("kodu", "").replace("{name}", "")
    assert others == others.upper() != others.lower()


def test_what_was_found_has_the_score_that_it_was_found_with(translator: Translator, sources: list[str]) -> None:
    capitals = [source.upper() for source in sources]
    found = translator.translate(capitals)
    scored = translator.score(capitals, [one.text for one in found])
    assert [one.text for one in scored] == [one.text for one in found]
    # The first word of a translation is written small by the toy language, and read with a capital.
    again = translator.score(
        [translator._wording.read(one) for one in capitals], [translator._wording.read(one.text) for one in found]
    )
    assert [one.score for one in scored] == pytest.approx([one.score for one in again])


def test_by_way_of_another_language_capitals_stay(translator: Translator, sources: list[str]) -> None:
    (one,) = Relay(translator, translator).translate([sources[0].upper()])
    assert one.text == one.text.upper() != one.text.lower()


@pytest.mark.parametrize("prefix", ["Asab", "asab", "ASAB"])
def test_what_a_word_is_begun_with_stays_as_it_was_given(translator: Translator, prefix: str) -> None:
    (one,) = translator.translate(["Basa"], prefixes=[prefix])
    assert one.text.startswith(prefix)
