"""What a translation can need: of 37,000 subwords a sentence asks for a few hundred, and only those are looked at.

For every subword of the source the subwords that it was seen with in translations, and the most frequent ones besides.
What a sentence may have depends on it alone, so its neighbours in a batch change nothing. Where a tag says which
language is asked for, there is a table for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.engines.arrays import load_array
from qkv.errors import CheckpointError
from qkv.search.engine import Integers

_LIKELY, _FREQUENT, _TAGS = "shortlist.likely.npy", "shortlist.frequent.npy", "shortlist.tags.npy"


@dataclass(frozen=True)
class Shortlist:
    """Subwords to expect."""

    likely: NDArray[Any]
    """In each table, for every subword of a source a row of those that its translation may have."""
    frequent: NDArray[Any]
    """Those that any translation may have."""
    tags: tuple[int, ...] = ()
    """What a source begins with that the table of the same number is for; none where there is one table for all."""

    @staticmethod
    def is_in(directory: Path) -> bool:
        return (directory / _LIKELY).is_file()

    @classmethod
    def load(cls, directory: Path, vocabulary: int) -> Shortlist:
        tagged = (directory / _TAGS).is_file()
        likely = load_array(directory / _LIKELY, dimensions=2 + tagged, kinds="u", below=vocabulary)
        frequent = load_array(directory / _FREQUENT, dimensions=1 + tagged, kinds="iu", below=vocabulary)
        tags = load_array(directory / _TAGS, dimensions=1, kinds="iu", below=vocabulary).tolist() if tagged else []
        if not tagged:
            likely, frequent = likely[None], frequent[None]
        if likely.shape[1] != vocabulary or (tagged and not len(tags) == len(likely) == len(frequent)):
            raise CheckpointError(
                f"{directory / _LIKELY} is damaged: it has {likely.shape[1]} rows for {vocabulary} subwords"
            )
        return cls(likely, frequent, tuple(tags))

    def save(self, directory: Path) -> None:
        tagged = bool(self.tags)
        np.save(directory / _LIKELY, self.likely if tagged else self.likely[0], allow_pickle=False)
        np.save(directory / _FREQUENT, self.frequent if tagged else self.frequent[0], allow_pickle=False)
        if tagged:
            np.save(directory / _TAGS, np.array(self.tags), allow_pickle=False)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is in it, by name."""
        return {"likely": self.likely, "frequent": self.frequent, "tags": np.array(self.tags, np.int64)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], vocabulary: int) -> Shortlist:
        """What `arrays` gave."""
        try:
            likely, frequent, tags = (arrays[name] for name in ("likely", "frequent", "tags"))
            tables, rows, _ = likely.shape
            sound = (rows, tables) == (vocabulary, max(1, len(tags))) and frequent.shape[:-1] == (tables,)
            known = all(one.dtype.kind in "iu" and not (one < 0).any() for one in (likely, frequent, tags))
            sound = sound and known and all((one < vocabulary).all() for one in (likely, frequent, tags))
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"a shortlist is damaged: {error}") from error
        if not sound:
            raise CheckpointError("a shortlist is damaged: it is not one of this vocabulary")
        return cls(likely, frequent, tuple(tags.tolist()))

    def with_that_of(self, other: Shortlist) -> Shortlist:
        """In the same tables, also what another has for the same languages."""
        likely, always = [], []
        for table, tag in enumerate(self.tags or (None,)):
            there = [other.tags.index(tag)] if tag in other.tags else [] if tag is not None else [0]
            likely.append(np.concatenate([_told(self.likely)[table], *(other.likely[one] for one in there)], axis=1))
            always.append(np.unique(np.concatenate([self.frequent[table], *(other.frequent[one] for one in there)])))
        widest, longest = max(one.shape[1] for one in likely), max(map(len, always))
        rows = [np.pad(one, ((0, 0), (0, widest - one.shape[1])), mode="edge") for one in likely]
        return Shortlist(
            np.stack(rows).astype(self.likely.dtype),
            np.stack([np.pad(one, (0, longest - len(one)), mode="edge") for one in always]),
            self.tags,
        )

    def table(self, source: Sequence[int]) -> int:
        """Which table a source is looked up in."""
        return self.tags.index(source[0]) if self.tags else 0

    def always(self, table: int) -> Integers:
        """What any translation of this table may have, in rising order."""
        return np.unique(self.frequent[table]).astype(np.int64)

    def own(self, table: int, sources: Sequence[Sequence[int]], wanted: Sequence[Collection[int]]) -> Integers:
        """What each of these sentences may have besides, in rising order; the vocabulary's size where there is no more.

        What one wants, for each or for none, is its own: its neighbours' translations are what they are without it.
        """
        vocabulary = self.likely.shape[1]
        rows = []
        for source, some in zip_longest(sources, wanted, fillvalue=()):
            allowed = np.zeros(vocabulary, bool)
            allowed[[*some]] = True
            # What was copied as it is needs no translation.
            allowed[[*source]] = True
            allowed[self.likely[table][[*source]]] = True
            allowed[self.frequent[table]] = False
            rows.append(np.flatnonzero(allowed))
        own_NO = np.full((len(rows), max(1, *map(len, rows))), vocabulary, np.int64)
        for own, row in zip(own_NO, rows, strict=True):
            own[: len(row)] = row
        return own_NO


def _told(likely: NDArray[Any]) -> NDArray[Any]:
    """Without places that stand for nothing in every row, of which text of few words leaves many; one stays."""
    empty = (likely == likely[:, :1]).all(axis=(0, 1))
    return likely[..., : max(1, int(np.count_nonzero(~empty)))]
