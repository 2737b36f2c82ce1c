"""What a translation can need: of 37,000 subwords a sentence asks for a few hundred, and only those are looked at.

For every subword of the source the subwords that it was seen with in translations, and the most frequent ones besides.
What a sentence may have depends on it alone, so its neighbours in a batch change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qkv.engines.arrays import load_array
from qkv.errors import CheckpointError
from qkv.search.engine import Floats, Integers

_LIKELY, _FREQUENT = "shortlist.likely.npy", "shortlist.frequent.npy"


@dataclass(frozen=True)
class Shortlist:
    """Subwords to expect."""

    likely: NDArray[Any]
    """For every subword of a source, a row of those that its translation may have."""
    frequent: NDArray[Any]
    """Those that any translation may have."""

    @staticmethod
    def is_in(directory: Path) -> bool:
        return (directory / _LIKELY).is_file()

    @classmethod
    def load(cls, directory: Path, vocabulary: int) -> Shortlist:
        likely = load_array(directory / _LIKELY, dimensions=2, kinds="u", below=vocabulary)
        if len(likely) != vocabulary:
            raise CheckpointError(
                f"{directory / _LIKELY} is damaged: it has {len(likely)} rows for {vocabulary} subwords"
            )
        return cls(likely, load_array(directory / _FREQUENT, dimensions=1, kinds="iu", below=vocabulary))

    def save(self, directory: Path) -> None:
        np.save(directory / _LIKELY, self.likely, allow_pickle=False)
        np.save(directory / _FREQUENT, self.frequent, allow_pickle=False)

    def of(self, sources: Sequence[Sequence[int]], wanted: Sequence[Collection[int]]) -> tuple[Integers, Floats]:
        """All that these sentences may have, in rising order; and for each, zero where it may and else -∞.

        What one wants, for each or for none, is its own: its neighbours' translations are what they are without it.
        """
        every = np.zeros((len(sources), len(self.likely)), bool)
        every[:, self.frequent] = True
        for allowed, some in zip(every, wanted, strict=False):
            allowed[[*some]] = True
        for allowed, source in zip(every, sources, strict=True):
            # What was copied as it is needs no translation.
            allowed[source] = True
            allowed[self.likely[source]] = True
        tokens_V = np.flatnonzero(every.any(axis=0))
        return tokens_V, np.where(every[:, tokens_V], np.float32(0), np.float32(-np.inf))
