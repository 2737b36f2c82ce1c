"""Finding pairs that came before, in memory that does not grow with the corpus: hashes sorted a bucket at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from qkv.prepare.clean import CleanCorpus, Hashes
from qkv.progress import Progress

_BUCKET_ROWS = 1 << 16
# Each is a file that every block is appended to: more of them would cost more than a fuller one.
_MOST_BUCKETS = 1024


def mark_duplicates(corpus: CleanCorpus, work: Path) -> None:
    """Decides that every pair whose two sides both came before is a duplicate."""
    count = min(_MOST_BUCKETS, -(-len(corpus) // _BUCKET_ROWS))
    buckets = [work / str(number) for number in range(count)]
    work.mkdir()
    for rows, hashes, _ in corpus.blocks():
        # Repeats within a block go at once, so that one line a million times over fills no bucket.
        repeated = _repeated(hashes)
        corpus.mark(np.flatnonzero(repeated) + rows.start, "duplicate")
        records = np.column_stack([hashes, np.arange(rows.start, rows.stop, dtype=np.uint64)])
        _append(records[~repeated], buckets)
    with Progress("comparing", total=len(corpus), unit="pairs") as progress:
        for bucket in buckets:
            records = np.frombuffer(bucket.read_bytes(), np.uint64).reshape(-1, 3)
            repeated = _repeated(records[:, :2])
            corpus.mark(records[repeated, 2].astype(np.int64), "duplicate")
            progress.advance(len(records))
            bucket.unlink()


def _repeated(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Which rows equal an earlier one."""
    order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    ordered = hashes[order]
    repeated = np.zeros(len(order), bool)
    # The sort is stable: of equal rows the earliest comes first.
    repeated[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    return repeated


def _append(records: npt.NDArray[np.uint64], buckets: list[Path]) -> None:
    """Adds each record to the bucket of its pair, in order."""
    bucket_of = (records[:, 0] ^ records[:, 1]) % np.uint64(len(buckets))
    order = np.argsort(bucket_of, kind="stable")
    ends = np.searchsorted(bucket_of[order], np.arange(len(buckets), dtype=np.uint64), side="right")
    for path, mine in zip(buckets, np.split(records[order], ends[:-1]), strict=True):
        with path.open("ab") as file:
            file.write(mine.tobytes())
