"""Faults of a translation that show without understanding it, and what another search is held to for them."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from qkv.text.currencies import amounts_in, can_tell_currencies, lost_currencies, ways_to_write_amount
from qkv.text.dates import lost_dates, ways_to_write_date
from qkv.text.numbers import Languages, changed_numbers, ways_to_write
from qkv.text.subwords import Tokenizer
from qkv.text.times import lost_times, ways_to_write_time
from qkv.translate.options import Terms

T = TypeVar("T")

_MOST = 5
"""Numbers, or words, that a search is held to: with more it takes long, and a table is no sentence."""
_LONGEST = 40
"""Characters of such a number: thousands of digits would take minutes, and nobody reads them."""
_NO_CHARACTER = "\ufffd"
_SIGNS = ".,;:!?\"'()[]{}«»“”„’‘…、。，！？（）「」"


class Faults(NamedTuple):
    """What is wrong with a translation."""

    terms: Terms
    """What another one has to have."""
    number: int
    """How many there are."""


def faults(
    source: str, translation: str, tokenizer: Tokenizer, *, amounts: bool, languages: Languages = (None, None)
) -> Faults | None:
    """What a translation of this source lacks that it has to have; None where nothing is seen to be wrong."""
    required, number = _wrong(source, translation, languages) if amounts else ((), 0)
    # A model that spells a word in bytes may write half a character.
    spelled = _few(_spelled(source, tokenizer)) if _NO_CHARACTER in translation and _NO_CHARACTER not in source else []
    if not number and not spelled:
        return None
    return Faults(Terms(required=required, once=tuple(spelled)), number + len(spelled))


def _wrong(source: str, translation: str, languages: Languages) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Of each number that has to be held to, how it may be written, and how many are wrong; if none is, nothing."""
    lost = _few(lost_currencies(source, translation, languages=languages))
    changed = changed_numbers(source, translation, languages=languages)
    numbers = _few([number for number in changed if len(number) <= _LONGEST])
    dates = _few(lost_dates(source, translation))
    times = _few(lost_times(source, translation, languages=languages))
    if not (lost or numbers or dates or times):
        return (), 0
    # Who is held to one amount alone may exchange the currencies of two.
    paid = [one for one in amounts_in(source) if not one.scaled] if can_tell_currencies(languages) else []
    paid = [*dict.fromkeys([*_few(paid), *lost])]
    whole = {amount.number for amount in paid if not amount.scaled}
    ways = [
        *(ways_to_write_amount(amount, languages=languages) for amount in paid),
        # A number that comes with its currency is not to come without it, too.
        *(ways_to_write(number, languages=languages) for number in numbers if number not in whole),
        *(ways_to_write_date(date, languages=languages) for date in dates),
        *(ways_to_write_time(time, languages=languages) for time in times),
    ]
    # Of what several have in common, as the currency of millions, one is asked for.
    return tuple(dict.fromkeys(ways)), len(lost) + len(numbers) + len(dates) + len(times)


def _few(some: list[T]) -> list[T]:
    return some if len(some) <= _MOST else []


def _spelled(text: str, tokenizer: Tokenizer) -> list[str]:
    """The words of a text that have letters of which the vocabulary knows no more than their bytes."""
    words = (word.strip(_SIGNS) for word in text.split())
    return [word for word in words if any(map(str.isalpha, word)) and _has_bytes(word, tokenizer)]


def _has_bytes(word: str, tokenizer: Tokenizer) -> bool:
    return any(tokenizer.byte(token) is not None for token in tokenizer.encode(word))
