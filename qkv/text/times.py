"""Clock times: 8 p.m. is 20 Uhr, 20 h or 8 in the evening, and not 18.00 Uhr."""

from __future__ import annotations

import re
from typing import NamedTuple

from qkv.text.numbers import BLANK, Languages


class Time(NamedTuple):
    """What a clock shows."""

    hour: int
    minute: int
    text: str
    """As it is typed."""

    @property
    def shown(self) -> tuple[int, int]:
        """By a clock with twelve hours: which half of the day it is may be told in words, or not at all."""
        return self.hour % 12, self.minute


_TIME = re.compile(
    r"(?<!\w)(?<!\d[.,:/-])(?<![$€£¥])(?:"
    rf"(?P<hour>\d\d?)(?:[:.](?P<minute>[0-5]\d))?{BLANK}?(?P<half>[ap])(?:\.{BLANK}?m\.|m\b)"
    rf"|(?P<hour_of>\d\d?)(?:[:.](?P<minute_of>[0-5]\d))?{BLANK}?Uhr\b"
    rf"|(?P<heure>\d\d?){BLANK}?h{BLANK}?(?P<passed>[0-5]\d)\b"
    # Eight hours are as long as this, but for who comes at them.
    r"|(?:(?<=\bà )|(?<=\bvers )|(?<=\bdès ))"
    rf"(?P<heures>\d\d?){BLANK}heures\b(?:{BLANK}(?P<after>[0-5]\d)\b)?(?! d[e'’])"
    r"|(?P<digits>\d\d?):(?P<more>[0-5]\d)(?![\w:]|[.,]\d))",
    re.IGNORECASE,
)
_WORDS = {
    "en": ("{clock} p.m.", "{clock}:{minute:02} p.m.", "{hour}:{minute:02}"),
    "de": ("{hour} Uhr", "{hour}:{minute:02} Uhr", "{hour}.{minute:02} Uhr"),
    "fr": ("{hour} heures", "{hour} h {minute:02}", "{hour}h{minute:02}"),
}
"""A whole hour, and how it is told with minutes."""


def times_in(text: str, language: str | None = None) -> list[Time]:
    """The clock times that are told in numbers and can be nothing else in this language."""
    found = (match for match in _TIME.finditer(text) if language != "de" or not _is_german_word(match))
    return [time for match in found if (time := _time(match)).hour <= 24]


def lost_times(source: str, translation: str, *, languages: Languages = (None, None)) -> list[Time]:
    """The times of a source that a translation lacks, where it has others in their place."""
    asked, found = times_in(source, languages[0]), times_in(translation, languages[1])
    shown = {time.shown for time in asked}
    if all(time.shown in shown for time in found):
        return []
    return [time for time in dict.fromkeys(asked) if not _is_there(time, found, translation)]


def ways_to_write_time(time: Time, *, languages: Languages = (None, None)) -> tuple[str, ...]:
    """A time as the other language tells it; as it is typed where nobody knows."""
    if languages[1] not in _WORDS:
        return (time.text,)
    whole, *parts = _WORDS[languages[1]]
    ways = parts if time.minute else [whole, parts[-1]]
    if time.hour <= 12:
        # 9 Uhr may be in the evening, too.
        ways = [way for way in ways if "p.m." not in way]
    return tuple(way.format(hour=time.hour, minute=time.minute, clock=time.hour - 12) for way in ways)


def _is_there(time: Time, found: list[Time], translation: str) -> bool:
    if any(one.shown == time.shown for one in found):
        return True
    # In words that are none of ours: 3 heures et demie, 15 uur 30, 3,16.
    hours = "|".join(f"0?{hour}" for hour in {time.hour, time.hour % 12, time.hour % 12 + 12})
    minutes = rf"\D{{1,9}}0?{time.minute}" if time.minute else ""
    others = _TIME.sub(" ", translation)
    return re.search(rf"(?<!\d)(?:{hours}){minutes}(?!\d)", others) is not None


def _is_german_word(match: re.Match[str]) -> bool:
    """Four may sit »am« table."""
    return match["half"] is not None and "." not in match[0]


def _time(match: re.Match[str]) -> Time:
    hour = int(match["hour"] or match["hour_of"] or match["heure"] or match["heures"] or match["digits"])
    minute = int(match["minute"] or match["minute_of"] or match["passed"] or match["after"] or match["more"] or 0)
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "p") if hour <= 12 else 99
    return Time(hour, minute, match[0])
