"""Numbers of a text, however its language writes them: 1,234.5 is 1.234,5 and 1 234,5."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_SPACES = " \u00a0\u202f"
BLANK = f"[{_SPACES}]"
"""Between thousands, or a number and what it counts."""
_APOSTROPHES = "'’"
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_NUMBER = re.compile(
    # A time or a date is written in other numbers elsewhere: at 7:45 p.m., um 19.45 Uhr; 24.12., 24 December.
    r"(?P<spared>(?<!\w)\d{1,2}(?:[:.][0-5]\d)?\s?(?:[ap]\.?m\b|Uhr\b|h(?:\s?[0-5]\d)?\b)"
    r"|(?<![\w:])(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?!\w)"
    r"|\b(?i:at|until|à|um|ab|bis|gegen)\s(?:[01]?\d|2[0-3])\.[0-5]\d(?![\w.,]?\d)"
    rf"|(?<![\w.$€£])(?:{_DAY}\.(?:{_MONTH}\.)?\s?[-–]\s?)?{_DAY}\.{_MONTH}\.(?!\d)"
    r"|(?<!\w)\d{1,4}(?P<between>[./-])\d{1,2}(?P=between)\d\d(?:\d\d)?(?!\w)"
    # Nor has a version thousands.
    r"|\b(?i:version|release)\s\d++(?:\.\d++)++)"
    rf"|(?<![\w.,])(?:\d{{1,3}}(?:[.,{_APOSTROPHES}{_SPACES}]\d{{3}})+(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++)*+)"
    # Nor is the 1990's a number.
    r"(?!\w|['’]s\b)"
)
_GROUPED = re.compile(rf"(\d{{1,3}}(?:[.,{_APOSTROPHES}{_SPACES}]\d{{3}})+|\d+)(?:[.,](\d+))?")
_BEGINS_WORD = re.compile(r"(?<![\w.,])\d++(?=[^\W\d_])")
"""As in 90er or 5km."""
_IN_WORD = re.compile(r"(?<=[^\W\d_])\d++")
"""As in A4, or where a number was written onto a word by mistake."""
_BROKEN = re.compile(rf"\d[{_SPACES}]\d{{4,}}")
"""Where thousands begin twice: 6 6678."""
_SEPARATORS = re.compile(rf"[.,{_SPACES}{_APOSTROPHES}]")
_DECADE = re.compile(r"\b(?i:années|años|anos|anni|jaren)\s(\d{3}0)\b")
"""Elsewhere these are the 80's, or the eighties."""
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}")
_GROUP = 3
"""Digits that stand together."""

Languages = tuple[str | None, str | None]
"""Those of a source and of its translation."""


class _Marks(NamedTuple):
    """How a language writes numbers."""

    group: str
    """Between thousands."""
    decimal: str


_POINTS, _COMMAS, _BLANKS = _Marks(".", ","), _Marks(",", "."), _Marks(_SPACES, ",")
_MARKS = {
    **dict.fromkeys(["en", "ja", "ko", "zh"], _COMMAS),
    **dict.fromkeys(["da", "de", "el", "es", "id", "it", "nl", "pt", "ro", "tr"], _POINTS),
    **dict.fromkeys(["bg", "cs", "et", "fi", "fr", "hu", "lt", "lv", "nb", "pl", "ru", "sk", "sv", "uk"], _BLANKS),
}
"""Of a language that is not here, anything may be what is written."""
_BETWEEN = f".,{_SPACES}{_APOSTROPHES}"
_ANY = _Marks(_BETWEEN, ".,")


def changed_numbers(source: str, translation: str, *, languages: Languages = (None, None)) -> list[str]:
    """The numbers of a source that a translation lacks, where it has others in their place, or too long to be words.

    Another that is missing alone was written in words, or belongs to what the translation says in another way. Where
    both languages are known, 1,500 is another number in German than in English.
    """
    others, missing = Counter([*numbers_in(translation), *_found(_BEGINS_WORD, translation)]), []
    for number in numbers_in(source):
        same = next((one for one in _ways(number, languages, usual=False) if others[one]), None)
        if same is None:
            missing.append(number)
        else:
            others[same] -= 1
    others.subtract(_found(_BEGINS_WORD, source))
    glued = Counter(_found(_IN_WORD, translation)) - Counter(_found(_IN_WORD, source))
    broken = Counter(_BROKEN.findall(translation)) - Counter(_BROKEN.findall(source))
    if broken:
        missing += [number for number in numbers_in(source) if sum(map(str.isdigit, number)) > _GROUP]
    if not (glued or broken or any(count > 0 for count in others.values())):
        missing = _dropped(missing, source, translation)
    return [*dict.fromkeys(missing)]


def numbers_in(text: str) -> list[str]:
    """The numbers as they are written, but for times, dates, versions, and those in a name such as A4."""
    return [match[0] for match in _NUMBER.finditer(text) if match["spared"] is None]


def ways_to_write(number: str, *, languages: Languages = (None, None)) -> tuple[str, ...]:
    """The number of a text in one language as a text in the other usually has it."""
    return _ways(number, languages, usual=True)


def _ways(number: str, languages: Languages, *, usual: bool) -> tuple[str, ...]:
    """Those, or all that nobody takes for another number: what begins a fraction is never between thousands."""
    match = _GROUPED.fullmatch(number)
    if match is None:
        return (number,)
    digits, fraction = "".join(filter(str.isdigit, match[1])), match[2]
    groups = [digits[max(0, end - _GROUP) : end] for end in range(len(digits), 0, -_GROUP)][::-1]
    read, written = (_MARKS.get(language or "") for language in languages)
    # Of three digits behind one separator nobody can say what they are who does not know the language.
    is_told = read is not None and written is not None and _is_told(number, match[1], read)
    marks = written if is_told and written is not None else _ANY
    all_between = marks.group if usual or not is_told else [mark for mark in _BETWEEN if mark not in marks.decimal]
    between = [*all_between, ""] if len(groups) > 1 else [""]
    ends = [""] if fraction is None else [f"{decimal}{fraction}" for decimal in marks.decimal]
    ways = [mark.join(groups) + end for mark in between for end in ends if not end or end[0] != mark]
    return tuple(dict.fromkeys(ways if is_told else [number, *ways]))


def _is_told(number: str, whole: str, marks: _Marks) -> bool:
    """Whether this is that many, and no version, address, or part of one, to who knows how the language writes them."""
    between = {*whole} - {*"0123456789"}
    if whole == number and not between:
        return True
    grouped = bool(between) and between <= {*marks.group, *_SPACES, *_APOSTROPHES} and not whole.startswith("0")
    ends_well = number == whole or number[len(whole)] == marks.decimal
    return grouped and ends_well and not _ADDRESS.fullmatch(number)


def _dropped(missing: list[str], source: str, translation: str) -> list[str]:
    """Those of the missing numbers that nobody would write in words, and that stand nowhere as part of a name or date.

    Who leaves 1967 out has lost it, and nobody says 2,347 in words; but 2,500 may be two and a half thousand.
    """
    written = _SEPARATORS.sub("", translation)
    decades = {*_DECADE.findall(source)}
    digits = {number: _SEPARATORS.sub("", number) for number in missing if number not in decades}
    return [
        number
        for number in missing
        if (whole := digits.get(number, "")) and len(whole) >= _GROUP and whole[-2:] != "00" and whole not in written
    ]


def _found(digits: re.Pattern[str], text: str) -> list[str]:
    """Digits of this kind that belong to no time, date or version."""
    return digits.findall(_NUMBER.sub(lambda match: match[0] if match["spared"] is None else " ", text))
