"""A time is the same on a clock of 12 hours and on one of 24, and another one is a fault."""

from __future__ import annotations

import pytest

from qkv.text.times import lost_times, times_in, ways_to_write_time


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("at 3:30 p.m., 9 am, 12 a.m. and 12 pm", [(15, 30), (9, 0), (0, 0), (12, 0)]),
        ("um 15.30 Uhr, 9 Uhr, 19:45", [(15, 30), (9, 0), (19, 45)]),
        ("à 15 h 30, 9h05, vers 8 heures, à 9 heures 20", [(15, 30), (9, 5), (8, 0), (9, 20)]),
        # Amounts, durations, results, and no time at all.
        ("3.30, $5 pm, 8 heures, à 8 heures de route, 2:1, 1:30:05, 45:30, 15 pm, 9 amps", []),
        ("", []),
    ],
)
def test_times_are_what_a_clock_shows(text: str, times: list[tuple[int, int]]) -> None:
    assert [(time.hour, time.minute) for time in times_in(text)] == times


def test_a_german_word_is_no_half_of_the_day() -> None:
    assert not times_in("Um acht saßen 4 am Tisch, Platz 3 am Fenster.", "de")
    assert len(times_in("9 am, 9 a.m.", "en")) == 2
    assert not lost_times("At 8:15 p.m. 4 sat down.", "Um Viertel nach acht saßen 4 am Tisch.", languages=("en", "de"))


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("at 8 p.m.", "um 18.00 Uhr", ["8 p.m."]),
        ("at 8 p.m.", "um 20 Uhr", []),
        ("at 8 p.m.", "um 8.00 Uhr", []),
        ("at 8 p.m.", "à 8 heures", []),
        ("at 8 p.m.", "à 18 heures", ["8 p.m."]),
        ("at 8 p.m.", "à 18 heures, à 20 h 20", ["8 p.m."]),
        ("at 8 p.m.", "um acht", []),
        ("at 3:30 p.m.", "à 15 h 30", []),
        ("at 3:30 p.m.", "um 15.00 Uhr", ["3:30 p.m."]),
        ("from 9:15 to 17:45", "von 9.15 bis 17.45 Uhr", []),
        ("from 9:15 to 17:45", "von 9.15 bis 18.45 Uhr", ["17:45"]),
        ("um 20 Uhr", "at 8 p.m.", []),
        ("um 20 Uhr", "at 10 p.m.", ["20 Uhr"]),
        ("at noon", "um 12 Uhr", []),
    ],
)
def test_a_time_is_lost_where_another_stands_for_it(source: str, translation: str, lost: list[str]) -> None:
    assert [time.text for time in lost_times(source, translation)] == lost


def test_a_time_is_written_as_the_other_language_does() -> None:
    whole, half = times_in("at 8 p.m. and 3:30 p.m.")
    assert ways_to_write_time(whole, languages=("en", "de")) == ("20 Uhr", "20.00 Uhr")
    assert ways_to_write_time(half, languages=("en", "fr")) == ("15 h 30", "15h30")
    assert ways_to_write_time(half, languages=("en", "xx")) == ("3:30 p.m.",)
    assert ways_to_write_time(*times_in("um 15.30 Uhr"), languages=("de", "en")) == ("3:30 p.m.", "15:30")
    assert ways_to_write_time(*times_in("um 9 Uhr"), languages=("de", "en")) == ("9:00",)
    assert ways_to_write_time(*times_in("um 20 Uhr"), languages=("de", "en")) == ("8 p.m.", "20:00")
