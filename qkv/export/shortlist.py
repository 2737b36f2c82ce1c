"""Learns which subwords translations of a subword have."""

from __future__ import annotations

import numpy as np

from qkv.data.cooccurrence import Cooccurrence
from qkv.data.corpus import Corpus
from qkv.engines.shortlist import Shortlist

LIKELY, FREQUENT = 64, 1000
_PAIRS = 200_000
"""So many pairs are counted at most, drawn evenly."""


def learn_shortlist(
    corpus: Corpus, vocabulary: int, *, end: int, likely: int = LIKELY, frequent: int = FREQUENT
) -> Shortlist:
    """The `likely` most likely translations of every subword, and the `frequent` most frequent subwords of targets.

    The end may be written whatever the source says.
    """
    known = Cooccurrence.of(corpus, vocabulary, pairs=_PAIRS)
    rows = known.likely(likely, missing=end).astype(np.uint32)
    return Shortlist(rows, np.union1d(known.frequent(frequent), [end]))
