"""Sentences laid into rows one token at a time: slow and plain, for small models and as the oracle of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from qkv.data.batch import Packed, PairBatch
from qkv.layers.loss import IGNORED


class Pair(NamedTuple):
    """The ids of a sentence and its translation, without begin and end."""

    source: list[int]
    target: list[int]


class Place(NamedTuple):
    """Where the tokens of a sentence stand in a batch."""

    row: int
    columns: slice


def packed(rows: Sequence[Sequence[Sequence[int]]], *, width: int, padding: int) -> Packed:
    """Row r holds the sentences `rows[r]` end to end."""
    ids = [[padding] * width for _ in rows]
    positions = [[0] * width for _ in rows]
    segments = [[0] * width for _ in rows]
    for r, sentences in enumerate(rows):
        column = 0
        for number, sentence in enumerate(sentences, start=1):
            for position, token in enumerate(sentence):
                ids[r][column], positions[r][column], segments[r][column] = token, position, number
                column += 1
    return Packed(torch.tensor(ids), torch.tensor(positions), torch.tensor(segments))


def pair_batch(
    rows: Sequence[Sequence[Pair]], *, source_width: int, target_width: int, padding: int, begin: int, end: int
) -> PairBatch:
    """Sources with their end, targets after a begin, and as labels the targets with their end."""
    labels = packed([[[*pair.target, end] for pair in row] for row in rows], width=target_width, padding=IGNORED)
    return PairBatch(
        packed([[[*pair.source, end] for pair in row] for row in rows], width=source_width, padding=padding),
        packed([[[begin, *pair.target] for pair in row] for row in rows], width=target_width, padding=padding),
        labels.ids_RW,
        source_tokens=sum(len(pair.source) + 1 for row in rows for pair in row),
        target_tokens=sum(len(pair.target) + 1 for row in rows for pair in row),
    )


def places(rows: Sequence[Sequence[Pair]]) -> list[Place]:
    """Where each pair's target stands in the batch, row after row."""
    found = []
    for r, row in enumerate(rows):
        column = 0
        for pair in row:
            length = len(pair.target) + 1
            found.append(Place(r, slice(column, column + length)))
            column += length
    return found
