"""Dates in numbers with their year: 12/05/2024 is 12.05.2024 and 12 May 2024, and not 12./05/2024 or 11/05/2024."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qkv.text.numbers import BLANK, Languages

_MONTHS, _DAYS = 12, 31
_DATE = re.compile(
    r"(?<![\w/])(?<!\d[.,:-])"
    r"(?:(?P<year>[12]\d{3})(?P<between>[./-])(?P<month>\d\d?)(?P=between)(?P<day>\d\d?)"
    r"|(?P<first>\d\d?)(?P<other>[./-])(?P<second>\d\d?)(?P=other)(?P<last>[12]\d{3}))"
    r"(?!\w|[.,:/-]\d)"
)
_LETTER = r"[^\W\d_]"
_ORDINAL = r"(?:\.|st|nd|rd|th|er|[ºª])?"
_MARKS = {
    **dict.fromkeys(["de", "cs", "da", "fi", "nb", "pl", "ru", "tr"], "."),
    "fr": "/",
    "es": "/",
    "it": "/",
    "pt": "/",
}
"""What stands between day, month and year, in this order, in languages that have no other."""


def dates_in(text: str) -> list[str]:
    """The dates as they are typed."""
    return [match[0] for match in _DATE.finditer(text) if _is_date(match)]


def lost_dates(source: str, translation: str) -> list[str]:
    """The dates of a source that a translation has not; which of two numbers is the month is left to the reader."""
    lost = (
        match[0]
        for match in _DATE.finditer(source)
        if _is_date(match) and not any(re.search(way, translation) for way in _patterns(*_parts(match)))
    )
    return [*dict.fromkeys(lost)]


def ways_to_write_date(date: str, *, languages: Languages = (None, None)) -> tuple[str, ...]:
    """A date as it is typed, and as the other language has it where day and month can be told apart."""
    match = _DATE.fullmatch(date)
    mark = _MARKS.get(languages[1] or "")
    if match is None or mark is None:
        return (date,)
    year, *others = _parts(match)
    if match["year"]:
        month, day = others
    elif match["other"] == "." or languages[0] != "en" or int(others[0]) > _MONTHS:
        day, month = others
    elif int(others[1]) > _MONTHS:
        month, day = others
    else:
        # 5/6 is in May to some who write English, and in June to others.
        return (date,)
    short = mark.join([str(int(day)), str(int(month)), year])
    return tuple(dict.fromkeys([date, mark.join([day, month, year]), short]))


def _parts(match: re.Match[str]) -> tuple[str, str, str]:
    """The year, and the others as they stand."""
    if match["year"]:
        return match["year"], match["month"], match["day"]
    return match["last"], match["first"], match["second"]


def _is_date(match: re.Match[str]) -> bool:
    smaller, larger = sorted(map(int, _parts(match)[1:]))
    return 1 <= smaller <= _MONTHS and larger <= _DAYS


def _patterns(year: str, one: str, other: str) -> Iterator[str]:
    """What is this date in whatever language."""
    end = r"(?!\w|[.,:/-]\d)"
    short = rf"(?:{year}|{year[2:]})"
    one, other = (rf"0?{int(number)}" for number in (one, other))
    for first, second in ((one, other), (other, one)):
        yield rf"(?<!\w)(?<!\d[.,:/-]){first}(?P<mark>[./-]){BLANK}?{second}(?P=mark){BLANK}?{short}{end}"
        yield rf"(?<!\w)(?<!\d[.,:/-]){year}(?P<mark>[./-]){first}(?P=mark){second}{end}"
        # As in Japanese.
        yield rf"(?<!\d){year}{BLANK}?{_LETTER}{BLANK}?{first}{BLANK}?{_LETTER}{BLANK}?{second}(?!\d)"
    for day in (one, other):
        # 12 May 2024, 12. Mai 2024, 12 de mayo de 2024; May 12th, 2024.
        month = rf"(?:\w+{BLANK})?{_LETTER}{{3,}}\.?,?{BLANK}(?:\w+{BLANK})?"
        yield rf"(?<!\w){day}{_ORDINAL},?{BLANK}{month}{year}(?!\w)"
        yield rf"{_LETTER}{{3}}\.?,?{BLANK}(?:the{BLANK})?{day}{_ORDINAL},?{BLANK}(?:of{BLANK})?{year}(?!\w)"
