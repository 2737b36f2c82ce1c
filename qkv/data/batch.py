"""A batch: rows of whole sentences laid end to end."""

from __future__ import annotations

from collections.abc import Iterator
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

    def to(self, device: torch.device, *, copy: bool = False) -> Packed:
        ids_RW, positions_RW, segments_RW = self
        return Packed(
            ids_RW.to(device, non_blocking=True, copy=copy),
            positions_RW.to(device, non_blocking=True, copy=copy),
            None if segments_RW is None else segments_RW.to(device, non_blocking=True, copy=copy),
        )

    def twice(self) -> Packed:
        ids_RW, positions_RW, segments_RW = self
        return Packed(_twice(ids_RW), _twice(positions_RW), None if segments_RW is None else _twice(segments_RW))

    def rows(self, some: slice) -> Packed:
        ids_RW, positions_RW, segments_RW = self
        return Packed(ids_RW[some], positions_RW[some], None if segments_RW is None else segments_RW[some])


class PairBatch(NamedTuple):
    """Source and target rows; the sentences of a row stand in the same row on both sides."""

    source: Packed
    target: Packed
    label_RW: Tensor
    source_tokens: int
    """Tokens without padding; each side's end counts as one."""
    target_tokens: int

    def to(self, device: torch.device, *, copy: bool = False) -> PairBatch:
        return self._replace(
            source=self.source.to(device, copy=copy),
            target=self.target.to(device, copy=copy),
            label_RW=self.label_RW.to(device, non_blocking=True, copy=copy),
        )

    def tensors(self) -> list[Tensor]:
        """All that is in it, always in the same order."""
        return [part for part in (*self.source, *self.target, self.label_RW) if part is not None]

    def pinned(self) -> PairBatch:
        """The same in memory that a GPU can read by itself."""
        return self._replace(
            source=Packed(*map(_pinned, self.source)),  # type: ignore[arg-type]
            target=Packed(*map(_pinned, self.target)),  # type: ignore[arg-type]
            label_RW=self.label_RW.pin_memory(),
        )

    def twice(self) -> PairBatch:
        """Every row two times, one after the other; the tokens are still those of the rows alone."""
        return self._replace(source=self.source.twice(), target=self.target.twice(), label_RW=_twice(self.label_RW))

    def split(self, parts: int) -> Iterator[PairBatch]:
        """The same rows in about equal parts; each part says how many tokens the whole has."""
        for rows in torch.arange(self.label_RW.size(0)).tensor_split(parts):
            some = slice(int(rows[0]), int(rows[-1]) + 1)
            yield self._replace(
                source=self.source.rows(some), target=self.target.rows(some), label_RW=self.label_RW[some]
            )


def _twice(part_RW: Tensor) -> Tensor:
    return part_RW.unsqueeze(1).expand(-1, 2, -1).flatten(0, 1)


def _pinned(part: Tensor | None) -> Tensor | None:
    return None if part is None else part.pin_memory()


def one_sentence_a_row(sentences: list[list[int]], padding: int) -> Packed:
    """Sentences as rows, the shorter ones padded at the end."""
    width = max(map(len, sentences))
    ids_RW = torch.tensor([ids + [padding] * (width - len(ids)) for ids in sentences])
    length_R = torch.tensor([len(ids) for ids in sentences])
    position_W = torch.arange(width)
    segments_RW = (position_W < length_R.unsqueeze(1)).long()
    return Packed(ids_RW, position_W.expand_as(ids_RW), segments_RW)
