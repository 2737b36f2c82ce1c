"""Currencies of amounts, by their signs, codes and words: $20 is 20 Dollar, and not 20 €."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from qkv.text.numbers import BLANK, Languages, ways_to_write


class Amount(NamedTuple):
    """A number beside a currency."""

    number: str
    currency: str
    """Its sign."""
    scaled: bool
    """Whether the number goes on behind its digits, as in $5 million and $10-11."""


_WORDS = {
    "$": {"en": "dollars", "de": "Dollar", "fr": "dollars", "es": "dólares", "it": "dollari", "nl": "dollar"},
    "€": {"en": "euros", "de": "Euro", "fr": "euros", "es": "euros", "it": "euro", "nl": "euro"},
    "£": {"en": "pounds", "de": "Pfund", "fr": "livres", "es": "libras", "it": "sterline", "nl": "pond"},
    "¥": {"en": "yen", "de": "Yen", "fr": "yens", "es": "yenes", "it": "yen", "nl": "yen"},
}
"""Of a language that is not here, nobody here knows what it calls them."""
_SIGN_FIRST = {"en", "nl"}

_SIGNS = {
    "$": r"(?:(?<![^\W\d_])(?:US|AU?|CA?|NZ|HK))?(?<!R)\$|\bUSD\b",
    "€": r"€|\bEUR\b",
    "£": r"£|\bGBP\b",
    "¥": r"¥|\bJPY\b",
}
"""What is before a number, or behind it."""
_NAMES = {"$": r"d[oó]ll?[aá]r(?:s|es|i|o)?", "€": r"euros?", "£": r"pounds sterling", "¥": r"y[eé]n(?:s|es)?"}
"""What is behind a number, and can mean nothing else: a pound may be a weight, and livres are books."""
_MENTIONS = {
    "$": r"\$|\bUSD\b|d[oó]ll?[aá]r|\bbucks?\b|\bgreenbacks?\b",
    "€": r"€|\bEUR\b|\beuro(?!p)|euros?\b",
    "£": r"£|\bGBP\b|pound|pfund|livre|libra|sterlin|\bpond|\bquid\b",
    "¥": r"[¥元円]|\bJPY\b|\bCNY\b|\bRMB\b|\by[eé]n(?:s|es)?\b|yuan|renminbi",
}
"""What may speak of it in any place."""
_SCALE = (
    r"(?:(?:hundred|thousand|[mb]illions?|trillions?|bn|m|k"
    r"|hundert|tausend|[MB]illi(?:on|ard)(?:en?)?|Mio\.?|Mrd\.?"
    r"|mille|milliers|milliards?|mil|millones|milioni|milione|miliardi|miljoen|miljard)\b\.?(?:\s(?:de|d['’]|di))?)"
)
# Behind a blank are thousands, or it is another number: in 2016 1 250 €.
_NUMBER = rf"(?:\d{{1,3}}(?:{BLANK}\d{{3}}(?!\d)){{1,6}}+|\d++)(?:[.,'’]\d++)*+"
_YEAR = re.compile(r"(?:19|20)\d\d")
_RANGE = rf"(?={BLANK}?(?:[-–]|to|bis|à){BLANK}?\d)"
_BEFORE = "|".join(f"(?P<before{place}>{sign})" for place, sign in enumerate(_SIGNS.values()))
_BEHIND = "|".join(
    # The sign of the next number is not this one's: in 2011 £1,250.
    rf"(?P<behind{place}>(?:{_SIGNS[sign]})(?!{BLANK}?\d)|(?P<name{place}>\b(?:US[- ])?{_NAMES[sign]}\b(?!-\w)))"
    for place, sign in enumerate(_SIGNS)
)
_AMOUNT = re.compile(
    rf"(?:{_BEFORE}){BLANK}?(?P<first>{_NUMBER})(?P<scale_first>{BLANK}?[-–]?{_SCALE}|{_RANGE})?"
    rf"|(?<!\d)(?<!\d[.,'’])(?P<last>{_NUMBER})(?P<scale_last>{BLANK}?[-–]?{_SCALE})?{BLANK}?[-–]?(?:{_BEHIND})",
    re.IGNORECASE,
)


def lost_currencies(source: str, translation: str, *, languages: Languages) -> list[Amount]:
    """The amounts of a source whose currency a translation does not speak of, or that have another one there."""
    if not can_tell_currencies(languages):
        return []
    there: dict[str, set[str]] = {}
    for number, currency, _ in amounts_in(translation):
        there.setdefault(number, set()).add(currency)
    lost = []
    for amount in amounts_in(source):
        ways = ways_to_write(amount.number, languages=languages)
        beside = set[str]().union(*(there.get(way, ()) for way in ways))
        if amount.currency not in beside and (beside or not _is_told(amount.currency, ways, translation)):
            lost.append(amount)
    return [*dict.fromkeys(lost)]


def _is_told(currency: str, ways: Sequence[str], text: str) -> bool:
    """Whether a currency that is not beside a number may belong to it, as in 20 bis 30 Dollar."""
    told = re.search(_MENTIONS[currency], text, re.IGNORECASE)
    found = [re.escape(way) for way in ways if way in text]
    # Nobody counts dollars in per cent.
    percent = rf"(?<![\d.,])(?:{'|'.join(found)})(?!\d)[^%]*%(?: de)?{BLANK}?(?:US-)?(?:{_MENTIONS[currency]})"
    return told is not None and not (found and re.search(percent, text, re.IGNORECASE))


def can_tell_currencies(languages: Languages) -> bool:
    """Whether it is known what both languages call them."""
    return all(language in _WORDS["$"] for language in languages)


def amounts_in(text: str) -> list[Amount]:
    """The amounts of money whose currency is told beside them."""
    return [_amount(match) for match in _AMOUNT.finditer(text) if not _may_be_year(match)]


def ways_to_write_amount(amount: Amount, *, languages: Languages) -> tuple[str, ...]:
    """The amount of a text in one language as a text in the other usually has it; its currency where it is scaled."""
    number, sign, scaled = amount
    language = languages[1] or ""
    word = _WORDS[sign][language]
    if scaled:
        return word, sign
    numbers = ways_to_write(number, languages=languages)
    signed = [sign + one if language in _SIGN_FIRST else f"{one} {sign}" for one in numbers]
    return (*signed, *(f"{one} {word}" for one in numbers))


def _may_be_year(match: re.Match[str]) -> bool:
    """As in the 2008 dollar crisis, and the 2016 Euro."""
    is_named = any(match[f"name{place}"] for place in range(len(_SIGNS)))
    return is_named and match["scale_last"] is None and _YEAR.fullmatch(match["last"]) is not None


def _amount(match: re.Match[str]) -> Amount:
    number = match["first"] or match["last"]
    currency = next(sign for place, sign in enumerate(_SIGNS) if match[f"before{place}"] or match[f"behind{place}"])
    return Amount(number, currency, scaled=match["scale_first"] is not None or match["scale_last"] is not None)
