"""Finding pairs that came before, in memory that does not grow with the corpus: hashes sorted a bucket at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qkv.prepare.clean import CleanCorpus, Hashes
from qkv.progress import Progress

_BUCKET_ROWS = 1 << 20


def mark_duplicates(corpus: CleanCorpus, work: Path) -> None:
    """Decides that every pair whose two sides both came before is a duplicate."""
    buckets = -(-len(corpus) // _BUCKET_ROWS)
    work.mkdir()
    for rows, hashes, _ in corpus.blocks():
        # Repeats within a block go at once, so that one line a million times over fills no bucket.
        first = _first_rows(hashes)
        corpus.mark(np.setdiff1d(np.arange(len(hashes)), first) + rows.start, "duplicate")
        kept = hashes[first]
        bucket_of = (kept[:, 0] ^ kept[:, 1]) % np.uint64(buckets)
        for bucket in range(buckets):
            chosen = bucket_of == bucket
            record = np.column_stack([kept[chosen], (first[chosen] + rows.start).astype(np.uint64)])
            with (work / str(bucket)).open("ab") as file:
                file.write(record.tobytes())
    with Progress("comparing", total=len(corpus), unit="pairs") as progress:
        for records in _buckets(work, buckets):
            first = _first_rows(records[:, :2])
            repeated = np.setdiff1d(np.arange(len(records)), first)
            corpus.mark(records[repeated, 2].astype(np.int64), "duplicate")
            progress.advance(len(records))


def _first_rows(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The rows that no earlier row equals, in order."""
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    ordered = hashes[order]
    new = np.ones(len(order), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    # The sort is stable: of equal rows the earliest comes first.
    return np.sort(order[new])


def _buckets(work: Path, count: int) -> Iterator[npt.NDArray[np.uint64]]:
    for bucket in range(count):
        path = work / str(bucket)
        yield np.frombuffer(path.read_bytes(), np.uint64).reshape(-1, 3)
        path.unlink()
