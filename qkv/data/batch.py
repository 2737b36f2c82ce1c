"""A batch: rows of whole sentences laid end to end."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Packed(NamedTuple):
    """One side of a batch. Segments number the sentences of a row from 1; 0 is nobody's.

    `segments_RW` is None where every row is one sentence without padding.
    """

    ids_RW: Tensor
    positions_RW: Tensor
    segments_RW: Tensor | None

    def to(self, device: torch.device) -> Packed:
        ids_RW, positions_RW, segments_RW = self
        return Packed(
            ids_RW.to(device, non_blocking=True),
            positions_RW.to(device, non_blocking=True),
            None if segments_RW is None else segments_RW.to(device, non_blocking=True),
        )


class PairBatch(NamedTuple):
    """Source and target rows; the sentences of a row stand in the same row on both sides."""

    source: Packed
    target: Packed
    label_RW: Tensor

    def to(self, device: torch.device) -> PairBatch:
        return PairBatch(self.source.to(device), self.target.to(device), self.label_RW.to(device, non_blocking=True))


def one_sentence_a_row(sentences: list[list[int]], padding: int) -> Packed:
    """Sentences as rows, the shorter ones padded at the end."""
    width = max(map(len, sentences))
    ids_RW = torch.tensor([ids + [padding] * (width - len(ids)) for ids in sentences])
    length_R = torch.tensor([len(ids) for ids in sentences])
    position_W = torch.arange(width)
    segments_RW = (position_W < length_R.unsqueeze(1)).long()
    return Packed(ids_RW, position_W.expand_as(ids_RW), segments_RW)
