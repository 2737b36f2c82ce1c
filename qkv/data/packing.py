"""Whole sentences laid end to end in rows of one width, and which rows a step of training sees."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.errors import ConfigError

Ints = NDArray[np.int64]


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
    return _best_fit(source_lengths, target_lengths, width)


def pack_fitting(source_lengths: Ints, target_lengths: Ints, width: int) -> Rows:
    """The same for the pairs that fit, without those that do not."""
    fitting = np.flatnonzero(np.maximum(source_lengths, target_lengths) <= width)
    if len(fitting) == 0:
        raise ConfigError(f"no pair of the corpus fits rows of {width} positions; set training.row_width higher")
    rows = pack(source_lengths[fitting], target_lengths[fitting], width)
    return Rows(fitting[rows.pairs], rows.starts)


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
    """Longest first, each into the row whose sides it leaves most alike; of these, the one it leaves least room in.

    Pairs of the same two lengths go together into rows that have the same room left: millions of pairs have only
    thousands of different lengths.
    """
    kind_of = (2 * width - source_lengths - target_lengths) * (width + 1) + source_lengths
    # Pairs alike come in no order, so that neighbours in a corpus do not share a row.
    order = np.lexsort((scramble(np.arange(len(kind_of), dtype=np.uint64)), kind_of))
    kinds, first, count = np.unique(kind_of[order], return_index=True, return_counts=True)
    sources = kinds % (width + 1)
    targets = 2 * width - kinds // (width + 1) - sources
    fewest = int(-(-max(source_lengths.sum(), target_lengths.sum()) // width))
    # How much more room a row may have on its source side than on its target side afterwards, the best first.
    lopsided = sorted(range(-width, width + 1), key=abs)
    nearly_even = [more for more in lopsided if abs(more) <= width // 32]
    row_of = np.empty(len(order), dtype=np.int64)
    rows = 0
    # open_rows[d, s]: rows with s source positions left and s - d target positions; bit s of some[d]: there are any.
    open_rows: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    some: defaultdict[int, int] = defaultdict(int)
    for source, target, begin, pairs in zip(
        sources.tolist(), targets.tolist(), first.tolist(), count.tolist(), strict=True
    ):
        end = begin + pairs
        while begin < end:
            # A lopsided row is hard to fill: as long as more rows are needed anyway, a new one is better.
            for more in nearly_even if rows < fewest else lopsided:
                difference = source - target + more
                needed = source + max(0, more)
                fitting = some[difference] >> needed
                if fitting:
                    room = needed + (fitting & -fitting).bit_length() - 1
                    alike = open_rows[difference, room]
                    into = alike[begin - end :]
                    del alike[begin - end :]
                    if not alike:
                        some[difference] ^= 1 << room
                    break
            else:
                together = width // max(source, target)
                new = -(-(end - begin) // together)
                if rows < fewest:
                    new = min(new, fewest - rows)
                elif together > 1:
                    # The next pair may fit beside this one.
                    new = 1
                into = list(range(rows, rows + new))
                room, more = width, target - source
                rows += new
            row_of[begin : begin + len(into)] = into
            begin += len(into)
            # Where either side is full, nothing more goes in.
            if room - source > max(0, more):
                open_rows[more, room - source] += into
                some[more] |= 1 << (room - source)
    in_rows = np.argsort(row_of, kind="stable")
    return Rows(order[in_rows], np.concatenate([[0], np.cumsum(np.bincount(row_of))]))
