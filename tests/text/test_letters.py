"""In which letters text in capitals and single words are read, and how translations of them are written."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.text.letters import Capitals, Letters, WithCapital, is_in_capitals
from qkv.text.typography import Style

TEXTS = st.text(alphabet="aAbBßßİıéÉ .'’\"{}1Σσςﬁ", max_size=30)
KNOWN = ["may", "May", "the", "door", "is", "open", "Berlin", "NATO", "Tür", "die", "in", "don't"]


def encode_all(texts: Sequence[str]) -> list[list[int]]:
    """A vocabulary of a few words, and of letters for all that is in none of them."""
    return [[KNOWN.index(text)] if text in KNOWN else [99] * len(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "STOP",
        "THE DOOR IS OPEN.",
        "DIE STRAßE",
        "VISIT https://example.com/a NOW!",
        "HELLO {name}",
        "DO NOT SIT",
        "2024: ÉTÉ CHAUD",
        "ΠΌΡΤΑ",
    ],
)
def test_text_in_capitals_is_known(text: str) -> None:
    assert is_in_capitals(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Stop",
        "THE DOOR is open",
        "USB",
        "UN, EU",
        "1234",
        "A4 B5",
        "US, UK, EU",
        "https://example.com",
        "門は開いている",
    ],
)
def test_abbreviations_and_all_other_text_are_not_in_capitals(text: str) -> None:
    assert not is_in_capitals(text)


def test_what_is_spared_says_nothing_of_the_letters_of_a_text() -> None:
    assert not is_in_capitals("BUY THE iPhone")
    assert is_in_capitals("BUY THE iPhone NOW!!! REALLY", spared=["iPhone"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE DOOR IS OPEN", "The door is open"),
        ('(THE DOOR. "THE DOOR" IS OPEN)', '(The door. "The door" is open)'),
        ("NATO IS IN BERLIN", "NATO is in Berlin"),
        ("DIE TÜR IN", "Die Tür in"),
        ("DON'T OPEN", "Don't open"),
        ("THE A4 DOOR_2", "The A4 DOOR_2"),
        ("THE {DOOR} `IS` OPEN", "The {DOOR} `IS` open"),
        ("THE İS", "THE İS"),
        ("OPEN İS", "Open İS"),
    ],
)
def test_text_in_capitals_is_read_in_the_letters_that_are_known(text: str, expected: str) -> None:
    # Where nothing is known in any way, the first way counts.
    assert Letters(encode_all).read(text) == expected


def test_what_is_spared_keeps_its_letters() -> None:
    assert Letters(encode_all).read("THE DOOR IS THE DOORS", spared=["DOOR"]) == "The DOOR is the doors"


@given(text=TEXTS)
def test_what_is_read_has_the_same_letters(text: str) -> None:
    read = Letters(encode_all).read(text.upper())
    assert len(read) == len(text.upper())
    assert read.upper() == text.upper()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Die Straße ist offen", "DIE STRASSE IST OFFEN"),
        ("fr", "L'été à {name}", "L'ÉTÉ À {name}"),
        ("tr", "Diyarbakır ili", "DİYARBAKIR İLİ"),
        ("tr_TR", "ili", "İLİ"),
        (None, "ili {names}", "ILI {NAMES}"),
    ],
)
def test_a_translation_is_put_into_capitals(language: str | None, text: str, expected: str) -> None:
    assert Capitals(language=language, spared=("{name}",)).write(text).text == expected


def test_marks_are_written_as_they_are_asked_for() -> None:
    style = Capitals(Style(printed=True, language="de"), "de")
    assert style.write('Sag "groß"').text == "SAG „GROSS“"


@given(text=TEXTS, printed=st.booleans())
def test_every_letter_is_where_its_place_says(text: str, printed: bool) -> None:
    for marks in (None, Style(printed=printed, language="fr")):
        edited = Capitals(marks).write(text)
        assert len(edited.places) == len(text) + 1
        assert (edited.places[0], edited.places[-1]) == (0, len(edited.text))
        assert sorted(edited.places) == [*edited.places]
        for place, letter in enumerate(text):
            if letter.isalpha():
                assert edited.text[edited.places[place] : edited.places[place + 1]].rstrip("\xa0 ") == letter.upper()


@given(text=TEXTS, more=TEXTS)
def test_a_text_that_grows_in_capitals_is_never_taken_back(text: str, more: str) -> None:
    style = Capitals()
    assert style.write(text + more).text.startswith(style.write(text).text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Door", "door"),
        ("Berlin", "Berlin"),
        ("May", "May"),
        ("Don't", "don't"),
        ("Die Tür", "Die Tür"),
        ("NATO", "NATO"),
        ("eBay", "eBay"),
    ],
)
def test_a_word_that_stands_alone_is_read_small_where_that_is_known(text: str, expected: str) -> None:
    letters = Letters(encode_all)
    assert letters.read(text) == expected
    assert letters.read(text, spared=[text]) == text


def test_the_translation_of_a_word_with_a_capital_has_one() -> None:
    letters = Letters(encode_all, "tr")
    for source, begun, expected in (
        ("Door", "", "İki"),
        ("door", "", "iki"),
        ("Door", "ik", "iki"),
        ("Do it", "", "iki"),
    ):
        writing = letters.writing(source, None, begun=begun)
        assert ("iki" if writing is None else writing.write("iki").text) == expected
    assert WithCapital().write("").text == ""
    assert WithCapital().write("ßa").text == "ßa"
    assert WithCapital(Style(printed=True, language="fr")).write("l'eau").text == "L’eau"


def test_what_is_given_for_a_word_is_read_as_it_was_written() -> None:
    letters = Letters(encode_all)
    assert letters.given("Door", "Open") == "door"
    assert letters.given("Door", "open") == "Door"
    assert letters.given("Berlin", "Open") == "Berlin"
