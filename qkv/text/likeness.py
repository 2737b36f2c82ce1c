"""How alike translations of one sentence are: chrF and BLEU of each against each, as sacreBLEU computes them for
single sentences, many at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]
"""The score, 0 to 100, of each text (rows) where each text (columns) is the reference."""

_CHARACTER_ORDERS = range(1, 7)
_WORD_ORDERS = range(1, 5)
_RECALL_WEIGHT = 4
"""chrF2 holds recall to be twice as important as precision; what counts is the square."""
_BLOCK = 1 << 14

_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
# The rules of NIST's mteval-v13a: most signs are words; points and commas but between digits; a dash after a digit.
_WORDS = [
    (re.compile(r'([ !"#$%&()*+/:;<=>?@\[\\\]^_`{|}~])'), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
]


def chrf(texts: Sequence[str]) -> Table:
    """chrF2: runs of up to six characters, white space left out."""
    plain = ["".join(text.split()) for text in texts]
    precision, recall, orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for size in _CHARACTER_ORDERS:
        common = _common([[text[first : first + size] for first in range(len(text) - size + 1)] for text in plain])
        count = common.diagonal()
        precision += common / np.maximum(count[:, None], 1)
        recall += common / np.maximum(count[None], 1)
        # Texts that are too short for runs of this size are not blamed for it.
        orders += (count[:, None] > 0) & (count[None] > 0)
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    weighed = _RECALL_WEIGHT * precision + recall
    table: Table = 100 * (1 + _RECALL_WEIGHT) * precision * recall / np.where(weighed > 0, weighed, 1)
    return table


def bleu(texts: Sequence[str]) -> Table:
    """BLEU of single sentences: an order without a match counts half as much as the one before, and what is too short
    for an order does without."""
    words = [_words(text) for text in texts]
    length = np.array([len(some) for some in words])
    logarithm, halved = np.zeros((len(texts), len(texts))), np.ones((len(texts), len(texts)))
    alike = _common(words) > 0
    for size in _WORD_ORDERS:
        common = _common(
            [[tuple(some[first : first + size]) for first in range(len(some) - size + 1)] for some in words]
        )
        count = np.maximum(length - size + 1, 0)[:, None]
        halved = np.where((common == 0) & (count > 0), halved / 2, halved)
        matched = np.where(common > 0, common, halved)
        logarithm += np.where(count > 0, np.log(100 * matched / np.maximum(count, 1)), 0)
    orders = np.clip(length, 1, len(_WORD_ORDERS))[:, None]
    brevity = np.minimum(0, 1 - length[None] / np.maximum(length, 1)[:, None])
    return np.where(alike, np.exp(brevity + logarithm / orders), 0.0)


LIKENESS: dict[str, Callable[[Sequence[str]], Table]] = {"chrf": chrf, "bleu": bleu}


def _common(some: Sequence[Sequence[Hashable]]) -> Table:
    """How many things each two have in common; what is in both twice counts twice."""
    numbers: dict[tuple[Hashable, int], int] = {}
    things = [
        np.array([numbers.setdefault(one, len(numbers)) for one in _told_apart(row)], dtype=np.int64) for row in some
    ]
    common = np.zeros((len(some), len(some)))
    # In blocks: of long texts that differ, there is not room for all at once.
    for first in range(0, len(numbers), _BLOCK):
        has = np.zeros((len(some), min(_BLOCK, len(numbers) - first)), dtype=np.float32)
        for row, numbered in enumerate(things):
            has[row, numbered[(numbered >= first) & (numbered < first + _BLOCK)] - first] = 1
        common += has @ has.T
    return common


def _told_apart(things: Sequence[Hashable]) -> Iterator[tuple[Hashable, int]]:
    """Each thing with how often it was there before."""
    seen: dict[Hashable, int] = {}
    for thing in things:
        seen[thing] = seen.get(thing, -1) + 1
        yield thing, seen[thing]


def _words(text: str) -> list[str]:
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES.items():
        text = text.replace(entity, sign)
    text = f" {text} "
    for pattern, parted in _WORDS:
        text = pattern.sub(parted, text)
    return text.split()
