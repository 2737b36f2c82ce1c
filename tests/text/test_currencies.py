"""A currency is the same by its sign, its code and its word, and another one is a fault."""

from __future__ import annotations

import pytest

from qkv.text.currencies import Amount, amounts_in, lost_currencies, ways_to_write_amount
from tests.files.effort import LINEAR, growth_of


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("It costs $20, not €1,299.99.", [("20", "$"), ("1,299.99", "€")]),
        ("US$5, C$ 10, USD 7 and 20 US-Dollar", [("5", "$"), ("10", "$"), ("7", "$"), ("20", "$")]),
        ("R$20 or 20 francs", []),
        ("£5 or ¥700, 700 yen", [("5", "£"), ("700", "¥"), ("700", "¥")]),
        ("a 50-euro note, 3\u202f000 euros", [("50", "€"), ("3\u202f000", "€")]),
        # These are weights, books, and a championship.
        ("5 pounds, 5 Pfund, 3 livres, in Euro 2012", []),
        # A year is no amount, though one follows it or it is that of a championship.
        ("In 2011 £1,250 was paid, in 2016 € 30.", [("1,250", "£"), ("30", "€")]),
        ("2023 20 dollars, En 2016 1 250 €", [("20", "$"), ("1 250", "€")]),
        ("the 2016 Euro, the 2008 dollar crisis, 10 euro-pallets", []),
        ("€1 2 3", [("1", "€")]),
        ("", []),
    ],
)
def test_amounts_are_numbers_beside_a_currency(text: str, amounts: list[tuple[str, str]]) -> None:
    assert [(one.number, one.currency) for one in amounts_in(text)] == amounts


@pytest.mark.parametrize(
    "text",
    [
        "$4.5 million",
        "£20bn",
        "3,5 Milliarden Euro",
        "3 millions de dollars",
        "a 5-million-dollar house",
        "£10-11bn",
        "$5 to 6",
    ],
)
def test_a_million_or_a_range_is_part_of_its_number(text: str) -> None:
    (amount,) = amounts_in(text)
    assert amount.scaled


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("It costs $20, not €1,299.99.", "Es kostet 20 € und nicht 1.299,99 €.", ["20"]),
        ("It costs $20, not €1,299.99.", "Es kostet 20 Dollar und nicht 1.299,99 Euro.", []),
        ("It costs $20 and 50% off", "Es kostet 20 und 50 % davon.", ["20"]),
        ("$20 and €30", "20 € und 30 $", ["20", "30"]),
        ("$20 to $30", "20 bis 30 Dollar", []),
        ("a fine of $20m", "eine Strafe von 20 Mio. US-Dollar", []),
        ("a fine of $20m", "eine Millionenstrafe in Dollar", []),
        ("£5 each", "je 5 Pfund", []),
        ("¥700", "700 Yuan", []),
        ("$20 and 50% off", "20 bis 50 % US-Dollar", ["20"]),
    ],
)
def test_a_currency_is_lost_where_no_or_another_one_stands_for_it(
    source: str, translation: str, lost: list[str]
) -> None:
    assert [one.number for one in lost_currencies(source, translation, languages=("en", "de"))] == lost


def test_of_a_language_whose_words_nobody_knows_nothing_is_lost() -> None:
    assert not lost_currencies("$20", "20", languages=("en", None))
    assert not lost_currencies("$20", "20 долларов", languages=("en", "ru"))


def test_an_amount_is_written_as_the_other_language_does() -> None:
    amount = Amount("1,234.5", "$", scaled=False)
    assert ways_to_write_amount(amount, languages=("en", "de"))[0] == "1.234,5 $"
    assert "1.234,5 Dollar" in ways_to_write_amount(amount, languages=("en", "de"))
    assert ways_to_write_amount(Amount("5", "€", scaled=False), languages=("de", "en")) == ("€5", "5 euros")
    assert ways_to_write_amount(Amount("5", "$", scaled=True), languages=("en", "fr")) == ("dollars", "$")


@pytest.mark.parametrize("unit", ["1", "1 ", "1.", "1,234 ", "111 ", "$1 ", "1€"])
def test_time_grows_with_the_text(unit: str) -> None:
    def lost(text: str) -> object:
        return lost_currencies(text, text, languages=("en", "de"))

    assert growth_of(lambda count: unit * count, lost, 2_000) < LINEAR
