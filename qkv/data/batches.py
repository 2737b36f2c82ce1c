"""Batches of a corpus: what step n sees, as tensors."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from qkv.data.batch import Packed, PairBatch
from qkv.data.corpus import Corpus
from qkv.data.packing import Ints, Rows, pack, pack_fitting, row_order
from qkv.data.ramp import NO_RAMP, Ramp

IGNORED = -100
"""The label of a place that holds no token: torch's own number for what a loss passes over, and so `layers.loss`'s."""


class Marks(NamedTuple):
    """The ids that are no part of any text."""

    padding: int
    begin: int
    end: int


class Batches:
    """Rows of a corpus in the order of training; `of_step(n)` is a function of the seed and n alone."""

    def __init__(
        self,
        corpus: Corpus,
        *,
        width: int,
        rows_a_step: int,
        marks: Marks,
        seed: int,
        leave_out_longer: bool = False,
        ramp: Ramp = NO_RAMP,
    ) -> None:
        self._corpus = corpus
        self._width = width
        self._marks = marks
        self._seed = seed
        self._ramp = ramp
        self.rows_a_step = rows_a_step
        # Each side of a pair has one mark: the source its end, the target its begin or, as label, its end.
        lengths = corpus.source_lengths() + 1, corpus.target_lengths() + 1
        self.rows = pack_fitting(*lengths, width) if leave_out_longer else pack(*lengths, width)
        self._order = lru_cache(maxsize=2)(self._order_of_epoch)

    def of_step(self, step: int, *, share: int = 0, shares: int = 1) -> PairBatch:
        """The batch of step n, counted from 0, or a share of its rows; that too says how many tokens the whole has."""
        rows = self.rows_of_step(step)
        pairs = self.rows.of(rows).pairs
        source, target = self._corpus.source_offsets, self._corpus.target_offsets
        return self.of_rows(np.array_split(rows, shares)[share])._replace(
            source_tokens=int((source[pairs + 1] - source[pairs] + 1).sum()),
            target_tokens=int((target[pairs + 1] - target[pairs] + 1).sum()),
        )

    def of_rows(self, rows: Ints) -> PairBatch:
        """These rows as a batch."""
        return lay_out(self._corpus, self.rows.of(rows), self._width, self._marks)

    def rows_of_step(self, step: int) -> Ints:
        """Which rows step n sees; one epoch follows the other without a gap."""
        place = np.arange(*(self._ramp.rows_before(one, self.rows_a_step) for one in (step, step + 1)))
        epoch, within = np.divmod(place, len(self.rows))
        return np.concatenate([self._order(int(one))[within[epoch == one]] for one in np.unique(epoch)])

    def lines_of_step(self, step: int) -> list[int]:
        """The lines of the corpus that step n sees, counted on from 1 over all its files."""
        lines: list[int] = self._corpus.lines[self.rows.of(self.rows_of_step(step)).pairs].tolist()
        return lines

    def epoch_at(self, step: int) -> float:
        """How many times the corpus has been seen when step n begins."""
        return self._ramp.rows_before(step, self.rows_a_step) / len(self.rows)

    @property
    def fill(self) -> float:
        """The share of target positions that hold a token."""
        return int((self._corpus.target_lengths()[self.rows.pairs] + 1).sum()) / (len(self.rows) * self._width)

    @property
    def left_out(self) -> int:
        """Pairs that are in no row, for they do not fit one."""
        return len(self._corpus) - len(self.rows.pairs)

    def _order_of_epoch(self, epoch: int) -> Ints:
        return row_order(len(self.rows), seed=self._seed, epoch=epoch)


def lay_out(corpus: Corpus, rows: Rows, width: int, marks: Marks) -> PairBatch:
    """The rows as tensors, with the target shifted by one against its labels (section 3.1)."""
    source = _Side(rows, corpus.source_ids, corpus.source_offsets, width)
    target = _Side(rows, corpus.target_ids, corpus.target_offsets, width)
    return PairBatch(
        source.packed(source.tokens(0, marks.end), marks.padding),
        target.packed(target.tokens(-1, marks.begin), marks.padding),
        target.filled(target.tokens(0, marks.end), IGNORED),
        source.count,
        target.count,
    )


class _Side:
    """Where every token of one side of some rows goes, one entry a token."""

    def __init__(self, rows: Rows, ids: NDArray[np.unsignedinteger], offsets: Ints, width: int) -> None:
        self._ids = ids
        self._shape = (len(rows), width)
        counts = np.diff(rows.starts)
        length = offsets[rows.pairs + 1] - offsets[rows.pairs] + 1
        end = np.cumsum(length)
        self.count = int(end[-1])
        start_of_row = np.concatenate([[0], end])[rows.starts[:-1]]
        self._position = np.arange(end[-1]) - np.repeat(end - length, length)
        self._first = np.repeat(offsets[rows.pairs], length)
        self._last = np.repeat(length - 1, length)
        self._row = np.repeat(np.repeat(np.arange(len(rows)), counts), length)
        self._column = np.arange(end[-1]) - start_of_row[self._row]
        self._segment = np.repeat(np.arange(len(rows.pairs)) - np.repeat(rows.starts[:-1], counts) + 1, length)

    def tokens(self, shift: int, mark: int) -> NDArray[np.int64]:
        """The sentences' ids moved on by `-shift`, with the mark in the place that this leaves free."""
        place = self._position + shift
        marked = (place < 0) | (place == self._last)
        # A marked place reads any token of the corpus; the mark is written over it.
        token = np.asarray(self._ids[np.where(marked, 0, self._first + place)], dtype=np.int64)
        token[marked] = mark
        return token

    def packed(self, tokens: NDArray[np.int64], padding: int) -> Packed:
        return Packed(self.filled(tokens, padding), self.filled(self._position, 0), self.filled(self._segment, 0))

    def filled(self, values: NDArray[np.int64], empty: int) -> torch.Tensor:
        block = np.full(self._shape, empty, dtype=np.int64)
        block[self._row, self._column] = values
        return torch.from_numpy(block)
