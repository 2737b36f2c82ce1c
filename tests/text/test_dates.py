"""A date is the same however a language writes it, and lost where its numbers do not stand together."""

from __future__ import annotations

import pytest

from qkv.text.dates import dates_in, lost_dates, ways_to_write_date


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("on 12/05/2024, 3.4.2020 and 2001-12-24.", ["12/05/2024", "3.4.2020", "2001-12-24"]),
        ("12/31/2025-01/02/2026", []),
        ("32/01/2024, 13/13/2024, 0/5/2024, 1/2/24", []),
        ("1.2.2024.5, 10.1.2.2024, v1.2.2024, a/1/2/2024", []),
        ("", []),
    ],
)
def test_dates_are_days_of_a_year_in_numbers(text: str, dates: list[str]) -> None:
    assert dates_in(text) == dates


@pytest.mark.parametrize(
    "translation",
    [
        "am 12/05/2024",
        "am 12.05.2024.",
        "am 12. 5. 2024",
        "am 12.5.24",
        "am 12. Mai 2024",
        "le 12 mai 2024",
        "el 12 de mayo de 2024",
        "on May 12, 2024",
        "on Dec. 5th, 2024",
        "05/12/2024",
        "2024-05-12",
        "2024年5月12日に",
    ],
)
def test_a_date_is_there_as_any_language_has_it(translation: str) -> None:
    assert lost_dates("It is on 12/05/2024.", translation) == []


@pytest.mark.parametrize(
    "translation",
    [
        "",
        "am 12./05/2024",
        "11/05/2024",
        "am 12/05",
        "um 5.00 Uhr",
        "112/05/2024",
        "12/05/2024/3",
        "12.05/2024",
        "le 5 et 12 h 2024",
    ],
)
def test_a_date_is_lost_where_its_numbers_do_not_stand_together(translation: str) -> None:
    assert lost_dates("It is on 12/05/2024.", translation) == ["12/05/2024"]


@pytest.mark.parametrize(
    ("date", "languages", "ways"),
    [
        ("12/05/2024", "en-de", ["12/05/2024"]),
        ("31/05/2024", "en-de", ["31/05/2024", "31.05.2024", "31.5.2024"]),
        ("05/31/2024", "en-de", ["05/31/2024", "31.05.2024", "31.5.2024"]),
        ("2024-05-03", "en-fr", ["2024-05-03", "03/05/2024", "3/5/2024"]),
        ("3.5.2024", "de-fr", ["3.5.2024", "3/5/2024"]),
        # Whoever reads English may take the first number for the month.
        ("3.5.2024", "de-en", ["3.5.2024"]),
    ],
)
def test_a_date_is_written_as_the_other_language_does_where_nobody_can_misread_it(
    date: str, languages: str, ways: list[str]
) -> None:
    one, other = languages.split("-")
    assert [*ways_to_write_date(date, languages=(one, other))] == ways
