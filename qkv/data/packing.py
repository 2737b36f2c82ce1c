"""Whole sentences laid end to end in rows of one width, and which rows a step of training sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.errors import ConfigError

Ints = NDArray[np.int64]

_BLOCK = 1 << 18


class Rows(NamedTuple):
    """Row r holds the pairs `pairs[starts[r]:starts[r + 1]]`."""

    pairs: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, rows: Ints) -> Rows:
        """Just these rows, in this order."""
        counts = self.starts[rows + 1] - self.starts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return Rows(self.pairs[np.repeat(self.starts[rows], counts) + within], starts)


def pack(source_lengths: Ints, target_lengths: Ints, width: int) -> Rows:
    """Lays pairs into as few rows as it can without splitting any; both sides of a row have `width` positions.

    A pair takes its length on each side, which must fit. The result depends on nothing but the lengths.
    """
    if len(source_lengths) == 0:
        return Rows(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    longest = max(source_lengths.max(), target_lengths.max())
    if longest > width:
        raise ConfigError(
            f"the corpus has a sentence of {longest} positions, and rows have {width}; "
            f"set data.row_width to at least {longest}, or prepare the corpus again"
        )
    blocks = -(-len(source_lengths) // _BLOCK)
    packed = []
    # A corpus may be sorted by length: strides give every block sentences of all lengths to combine.
    for block in range(blocks):
        some = slice(block, None, blocks)
        rows = _best_fit(source_lengths[some], target_lengths[some], width)
        packed.append(Rows(rows.pairs * blocks + block, rows.starts))
    counts = np.concatenate([np.diff(rows.starts) for rows in packed])
    return Rows(np.concatenate([rows.pairs for rows in packed]), np.concatenate([[0], np.cumsum(counts)]))


def row_order(rows: int, *, seed: int, epoch: int) -> Ints:
    """The order in which an epoch takes its rows: a permutation that any machine computes alike."""
    with np.errstate(over="ignore"):
        key = scramble(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(epoch))
        noise = scramble(np.arange(rows, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95) + key)
    return np.argsort(noise, kind="stable")


def scramble(x: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: integer arithmetic, so no library's random stream is trusted to stay."""
    x = np.asarray(x, dtype=np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _best_fit(source_lengths: Ints, target_lengths: Ints, width: int) -> Rows:
    """Longest first, each into the row whose scarcer side it fills best."""
    longest = np.maximum(source_lengths, target_lengths)
    order = np.argsort(-longest, kind="stable")
    row_of: list[int] = []
    room: list[tuple[int, int]] = []
    # open_rows[n]: rows whose scarcer side has n positions left; bit n of `some` tells that there are any.
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]
    some = 0
    for source, target in zip(source_lengths[order].tolist(), target_lengths[order].tolist(), strict=True):
        fitting = some >> max(source, target)
        if fitting:
            left = max(source, target) + (fitting & -fitting).bit_length() - 1
            row = open_rows[left].pop()
            if not open_rows[left]:
                some &= ~(1 << left)
            source_room, target_room = room[row]
        else:
            row, source_room, target_room = len(room), width, width
            room.append((width, width))
        row_of.append(row)
        room[row] = source_room - source, target_room - target
        left = min(room[row])
        if left:
            open_rows[left].append(row)
            some |= 1 << left
    in_rows = np.argsort(row_of, kind="stable")
    return Rows(order[in_rows], np.concatenate([[0], np.cumsum(np.bincount(row_of))]))
