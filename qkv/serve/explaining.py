"""A translation told word by word: how sure each word is, where it came from, and what else could be said.

What is told is for a page, so places in a text are counted as JavaScript counts them: in units of UTF-16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from qkv.text.words import Span, words
from qkv.translate import Parted, Translation


def explained(parted: Parted, wordings: Sequence[Sequence[Translation]]) -> dict[str, Any]:
    """The sentences of a text in order, each with its wordings, best first, and with what stands before it.

    A sentence that nobody waits for any more may have none.
    """
    gaps = parted.pieces.gaps_between([some[0].text if some else "" for some in wordings])
    sentences = [
        {
            "before": gap,
            "text": sentence,
            "wordings": [_wording(sentence, one) for one in {one.text: one for one in reversed(some)}.values()][::-1],
        }
        for gap, sentence, some in zip(gaps, parted.sentences, wordings, strict=False)
    ]
    return {"sentences": sentences, "after": gaps[-1]}


def _wording(sentence: str, one: Translation) -> dict[str, Any]:
    told: list[dict[str, Any]] = []
    if one.alignment is not None:
        # What the model read was normalised: its words are those of the sentence, though not at the same places.
        own = words(sentence)
        links = one.alignment.links if len(own) == len(one.alignment.source) else ()
        in_source, in_target = _units(sentence), _units(one.text)
        told = [
            {
                "span": _counted(span, in_target),
                "probability": round(math.exp(score), 4),
                "sources": [_counted(own[link.source], in_source) for link in links if link.target == number],
            }
            for number, (span, score) in enumerate(zip(one.alignment.target, one.word_scores, strict=True))
        ]
    return {"text": one.text, "probability": math.exp(one.log_probability), "words": told}


def _units(text: str) -> list[int]:
    """For each character, and for the end, how many units stand before it."""
    return [*itertools.accumulate((1 + (character > "\uffff") for character in text), initial=0)]


def _counted(span: Span, units: Sequence[int]) -> list[int]:
    return [units[span.start], units[span.end]]
