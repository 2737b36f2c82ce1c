"""Which of several translations is taken, other than by how likely the model holds it to be."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from qkv.text.likeness import LIKENESS
from qkv.translate.options import Likeness, Rerank
from qkv.translate.translation import Translation


def by_likeness(drawn: Sequence[Translation], likeness: Likeness) -> list[Translation]:
    """The different ones of these, ranked by how much they are like all the others on average.

    What was drawn often counts often, as another as well.
    """
    first = {one.text: one for one in reversed(drawn)}
    texts = [*dict.fromkeys(one.text for one in drawn)]
    times = np.array([sum(one.text == text for one in drawn) for text in texts])
    table = LIKENESS[likeness](texts)
    mean = (table @ times - table.diagonal()) / (len(drawn) - 1)
    ranked = [dataclasses.replace(first[text], score=float(score)) for text, score in zip(texts, mean, strict=True)]
    return sorted(ranked, key=lambda one: -one.score)


def reranked(
    texts: Sequence[str], found: Sequence[list[Translation]], rerank: Rerank, length_penalty: float
) -> list[list[Translation]]:
    """Those found for each text, ranked by their own scores and a second model's together."""
    pairs = [(text, one) for text, some in zip(texts, found, strict=True) for one in some]
    sources, targets = [text for text, _ in pairs], [one.text for _, one in pairs]
    if rerank.backward:
        sources, targets = targets, sources
    seconds = iter(rerank.translator.score(sources, targets, length_penalty=length_penalty))
    return [
        sorted((_weighed(one, next(seconds), rerank.weight) for one in some), key=lambda one: -one.score)
        for some in found
    ]


def told_apart(ranked: Sequence[Translation]) -> list[Translation]:
    """The best of those that have the same text, in their order."""
    by_text: dict[str, Translation] = {}
    for one in ranked:
        by_text.setdefault(one.text, one)
    return [*by_text.values()]


def _weighed(one: Translation, second: Translation, weight: float) -> Translation:
    # What weighs nothing has no say, not even where it holds a translation to be impossible.
    score = one.score if weight == 0 else (1 - weight) * one.score + weight * second.score
    return dataclasses.replace(one, score=score)
