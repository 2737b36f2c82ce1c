"""Numbers are the same however a language writes them, and others where a translation got them wrong."""

from __future__ import annotations

import pytest

from qkv.text.numbers import changed_numbers, numbers_in, ways_to_write


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It costs $1,234.50, not 5 €.", ["1,234.50", "5"]),
        ("3 450 000 dollars, 12\u00a0345,6 et 1’000", ["3 450 000", "12\u00a0345,6", "1’000"]),
        ("A4, H2O, 3D, 90er, v2, the 1990's", []),
        ("at 7:45 p.m., 9 am, 19:30 or 12:00:05", []),
        ("on 9/11/2001, 12.03.2024 or 2024-03-12", []),
        ("um 12.00 Uhr, 15 Uhr, 3 h 30, at 3.30, Um 19.45", []),
        ("am 24.12. und 3.5., 12.-15.3. frei", []),
        ("costs 3.30 or 24.12 euros", ["3.30", "24.12"]),
        ("12-15 of 300.", ["12", "15", "300"]),
        ("Call +49 30 1234567.", ["49", "30", "1234567"]),
        ("version 2.0.1, 3.14 and Release 1.500", ["3.14"]),
        ("a loss of $45.30. It was $12.10.", ["45.30", "12.10"]),
        ("17h74 or 45:30", ["45", "30"]),
        ("", []),
    ],
)
def test_numbers_are_found_and_times_and_names_are_none(text: str, numbers: list[str]) -> None:
    assert numbers_in(text) == numbers


@pytest.mark.parametrize(
    ("source", "translation", "changed"),
    [
        ("The price is $1,234.50.", "Der Preis beträgt 1.234,50 $.", []),
        ("a budget of 3,450,000", "un budget de 3 450 000", []),
        ("a budget of 3,450,000", "un budget de 3 40 000", ["3,450,000"]),
        ("Das Ticket kostet 63 €.", "The ticket costs €33.", ["63"]),
        ("$12.5 billion", "2,5 Mrd. $", ["12.5"]),
        ("3 of 15 cases", "drei von 15 Fällen", []),
        ("3 of 15 cases, two", "drei von 15 Fällen, 2", ["3"]),
        ("the 20th century", "le XXe siècle", []),
        ("two of 15", "2 von 15", []),
        ("at 7:45 p.m.", "um 19.45 Uhr", []),
        ("on March 5", "am 5. März", []),
        ("5 and 5", "5 und 6", ["5"]),
        ("over €1,234.56", "über 1,234,56", ["1,234.56"]),
    ],
)
def test_a_number_is_changed_where_another_is_in_its_place(source: str, translation: str, changed: list[str]) -> None:
    assert changed_numbers(source, translation) == changed


@pytest.mark.parametrize("number", ["1,234.5", "1.234,5", "1 234,5", "1234.5"])
def test_a_number_is_written_in_every_way(number: str) -> None:
    ways = ways_to_write(number)
    assert ways[0] == number
    assert {"1,234.5", "1.234,5", "1 234,5", "1\u00a0234,5", "1234,5", "1'234.5"} <= {*ways}
    assert len({*ways}) == len(ways)
    assert not {"1.234.5", "1,234,5"} & {*ways}


def test_what_is_no_plain_number_is_written_in_one_way() -> None:
    assert ways_to_write("2.0.1") == ("2.0.1",)
    assert {*ways_to_write("63")} == {"63"}
    assert {*ways_to_write("12.5")} == {"12.5", "12,5"}
    assert {"1,234", "1.234", "1234", "1 234"} <= {*ways_to_write("1,234")}


@pytest.mark.parametrize(
    ("source", "translation", "languages", "changed"),
    [
        ("1,500 mg", "1,500 mg", "en-de", ["1,500"]),
        ("1,500 mg", "1.500 mg", "en-de", []),
        ("1,500 mg", "1500 mg", "en-de", []),
        ("1,500 mg", "1’500 mg", "en-de", []),
        ("1,500 mg", "1 500 mg", "en-de", []),
        ("1,500 mg", "1\u202f500 mg", "en-fr", []),
        ("1,500 mg", "1,500 mg", "en-fr", ["1,500"]),
        # Nobody who writes a comma before a fraction takes this for one.
        ("1,500 mg", "1.500 mg", "en-fr", []),
        ("from 6,678 to 17", "de 6 6678 à 17", "en-fr", ["6,678"]),
        ("In 2015 2000 came", "In 2015 2000 kamen", "en-de", []),
        ("9.867 Euro", "EUR 9.867", "de-en", ["9.867"]),
        ("9.867 Euro", "9,867 euros", "de-en", []),
        ("9.867,50 Euro", "9.867,50 euros", "de-en", ["9.867,50"]),
        ("9.867,50 Euro", "9,867.50 euros", "de-en", []),
        ("5 097 469 kg", "5.097.469 kg", "fr-en", ["5 097 469"]),
        ("1250 kg", "1,250 kg", "en-de", ["1250"]),
        # What a reader of the source's language would not take for thousands may be a version, or an address.
        ("9.867 and 2.5", "9.867 und 2.5", "en-de", []),
        ("0.125", "0.125", "de-en", []),
        ("192.168.100.200", "192.168.100.200", "de-en", []),
        ("1.234.567.890 Euro", "EUR 1.234.567.890", "de-en", ["1.234.567.890"]),
        # Of a language whose numbers nobody here knows, anything may be right.
        ("1,500", "1,500", "en-xx", []),
    ],
)
def test_who_knows_both_languages_knows_which_separators_are_wrong(
    source: str, translation: str, languages: str, changed: list[str]
) -> None:
    one, other = languages.split("-")
    assert changed_numbers(source, translation, languages=(one, other)) == changed


def test_ways_to_write_are_those_of_the_other_language() -> None:
    assert ways_to_write("1,234.5", languages=("en", "de")) == ("1.234,5", "1234,5")
    assert ways_to_write("1 234", languages=("fr", "en")) == ("1,234", "1234")
    assert {*ways_to_write("1,234", languages=("en", "fr"))} == {"1 234", "1\u00a0234", "1\u202f234", "1234"}


@pytest.mark.parametrize(
    ("source", "translation", "changed"),
    [
        ("He owes me $3,002.30.", "Il me doit 3h2,30 dollars.", ["3,002.30"]),
        ("The ticket was $17,874.45.", "Le billet était de 17h74,45 dollars.", ["17,874.45"]),
        ("We paid €71 last year.", "Wir haben letztes Jahr71 EUR bezahlt.", ["71"]),
        ("in the A4, 3 of 15", "auf der A4 drei von 15", []),
        ("in the 90s, 3 of 15", "in den 90ern drei von 15", []),
        ("the 20th, 5 km, at 3 pm", "der 20., 5km, um 15 Uhr", []),
    ],
)
def test_a_number_that_became_part_of_a_word_is_lost(source: str, translation: str, changed: list[str]) -> None:
    assert changed_numbers(source, translation) == changed


@pytest.mark.parametrize(
    ("source", "translation", "dropped"),
    [
        ("He has lived here since 1967.", "Er lebt hier.", ["1967"]),
        ("It has 2,347 pages.", "Es hat viele Seiten.", ["2,347"]),
        ("the 110 metres hurdles", "les haies", ["110"]),
        ("from 1967 to 1967", "ab 1967", []),
        ("at 911, in 1967", "bei 911, in den 1967ern", []),
        ("on December 20, 2012", "am 20.12.2012", []),
        # Round numbers and short ones may be words.
        ("100 of 2,500 roubles", "cent roubles", []),
        ("63 pages", "dreiundsechzig Seiten", []),
        ("des années 1980", "of the eighties", []),
        ("en 1980", "then", ["1980"]),
    ],
)
def test_a_long_number_that_is_missing_alone_was_dropped(source: str, translation: str, dropped: list[str]) -> None:
    assert changed_numbers(source, translation) == dropped
