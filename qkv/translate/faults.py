"""Faults of a translation that show without knowing its language, and what another search is held to for them."""

from __future__ import annotations

from typing import NamedTuple

from qkv.text.numbers import Languages, changed_numbers, ways_to_write
from qkv.text.subwords import Tokenizer
from qkv.translate.options import Terms

_MOST = 5
"""Numbers, or words, that a search is held to: with more it takes long, and a table is no sentence."""
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
    changed = _few(changed_numbers(source, translation, languages=languages)) if amounts else []
    # A model that spells a word in bytes may write half a character.
    spelled = _few(_spelled(source, tokenizer)) if _NO_CHARACTER in translation and _NO_CHARACTER not in source else []
    if not changed and not spelled:
        return None
    required = tuple(ways_to_write(number, languages=languages) for number in changed)
    return Faults(Terms(required=required, once=tuple(spelled)), len(changed) + len(spelled))


def _few(some: list[str]) -> list[str]:
    return some if len(some) <= _MOST else []


def _spelled(text: str, tokenizer: Tokenizer) -> list[str]:
    """The words of a text that have letters of which the vocabulary knows no more than their bytes."""
    words = (word.strip(_SIGNS) for word in text.split())
    return [word for word in words if any(map(str.isalpha, word)) and _has_bytes(word, tokenizer)]


def _has_bytes(word: str, tokenizer: Tokenizer) -> bool:
    return any(tokenizer.byte(token) is not None for token in tokenizer.encode(word))
