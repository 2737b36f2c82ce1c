"""Numbers of a text, however its language writes them: 1,234.5 is 1.234,5 and 1 234,5."""

from __future__ import annotations

import re
from collections import Counter

_SPACES = " \u00a0\u202f"
_NUMBER = re.compile(
    # A time or a date is written in other numbers elsewhere: at 7:45 p.m., um 19.45 Uhr; 24.12., 24 December.
    r"(?P<time>(?<!\w)\d{1,2}(?:[:.]\d\d)?\s?(?:[ap]\.?m\b|Uhr\b|h(?:\s?\d\d)?\b)"
    r"|(?<![\w:])\d{1,2}:\d\d(?::\d\d)?(?!\w)"
    r"|\b(?i:at|until|à|um|ab|bis|gegen)\s(?:[01]?\d|2[0-3])\.[0-5]\d(?![\w.,]?\d)"
    r"|(?<![\w.])(?:\d{1,2}\.(?:\d{1,2}\.)?\s?[-–]\s?)?\d{1,2}\.\d{1,2}\.(?!\d)"
    r"|(?<!\w)\d{1,4}(?P<between>[./-])\d{1,2}(?P=between)\d\d(?:\d\d)?(?!\w))"
    rf"|(?<![\w.,])(?:\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++)*+)(?!\w)"
)
_GROUPED = re.compile(rf"(\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+|\d+)(?:[.,](\d+))?")
_BETWEEN_GROUPS = ("", ",", ".", " ", "\u00a0", "\u202f", "'", "’")


def changed_numbers(source: str, translation: str) -> list[str]:
    """The numbers of a source that a translation lacks, where it has others in their place.

    One that is missing alone was written in words, or belongs to what the translation says in another way.
    """
    others, missing = Counter(numbers_in(translation)), []
    for number in numbers_in(source):
        same = next((one for one in ways_to_write(number) if others[one]), None)
        if same is None:
            missing.append(number)
        else:
            others[same] -= 1
    return [*dict.fromkeys(missing)] if others.total() else []


def numbers_in(text: str) -> list[str]:
    """The numbers as they are written, but for times and dates, and those that are part of a name such as A4."""
    return [match[0] for match in _NUMBER.finditer(text) if match["time"] is None]


def ways_to_write(number: str) -> tuple[str, ...]:
    """The number as it is, and as any language may write it."""
    match = _GROUPED.fullmatch(number)
    if match is None:
        return (number,)
    digits, fraction = "".join(filter(str.isdigit, match[1])), match[2]
    groups = [digits[max(0, end - 3) : end] for end in range(len(digits), 0, -3)][::-1]
    # Of three digits behind one separator nobody can say what they are.
    wholes = [between.join(groups) for between in (_BETWEEN_GROUPS if len(groups) > 1 else ("",))]
    ends = [""] if fraction is None else [f".{fraction}", f",{fraction}"]
    ways = [whole + end for whole in wholes for end in ends if end[:1] not in whole or not end]
    return (number, *dict.fromkeys(one for one in ways if one != number))
