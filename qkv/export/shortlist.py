"""Learns which subwords translations of a subword have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkv.data.cooccurrence import Cooccurrence
from qkv.data.corpus import Corpus
from qkv.engines.shortlist import Shortlist

_LIKELY = 32
"""Places for what is not frequent: of what a model wrote, 64 would miss 0.13 of a hundred subwords instead of 0.14, and
translate 4 % slower."""
_FREQUENT_SHARE = 0.45
"""Of the vocabulary, what may always come. A thousand of 37,000 lost 0.7 BLEU on text from elsewhere than the training
data, and a third still 0.12; these multiply quickly, as they are constants of a graph."""
_PAIRS = 200_000
"""So many pairs are counted at most, drawn evenly."""


def shortlist_sizes(vocabulary: int) -> tuple[int, int]:
    """How many translations of every subword are in a shortlist, and how many subwords besides."""
    return _LIKELY, int(vocabulary * _FREQUENT_SHARE)


def learn_shortlist(
    corpus: Corpus,
    vocabulary: int,
    *,
    end: int,
    tags: Sequence[int] = (),
    likely: int | None = None,
    frequent: int | None = None,
) -> Shortlist:
    """The `frequent` most frequent subwords of targets, and of all others the `likely` most likely translations of
    every subword.

    The end may be written whatever the source says. Where sources begin with tags of languages, each tag has a table.
    """
    sizes = shortlist_sizes(vocabulary)
    likely, frequent = sizes[0] if likely is None else likely, sizes[1] if frequent is None else frequent
    first = corpus.source_ids[np.minimum(corpus.source_offsets[:-1], len(corpus.source_ids) - 1)]
    behind = [np.flatnonzero(first == tag) for tag in tags] or [np.arange(len(corpus))]
    tables = [Cooccurrence.of(corpus, vocabulary, pairs=_PAIRS, among=among) for among in behind]
    dtype = np.min_scalar_type(vocabulary - 1)
    most = [np.union1d(known.frequent(frequent), [end]) for known in tables]
    longest = max(map(len, most))
    return Shortlist(
        np.stack(
            [
                known.likely(likely, missing=end, without=some).astype(dtype)
                for known, some in zip(tables, most, strict=True)
            ]
        ),
        np.stack([np.pad(some, (0, longest - len(some)), constant_values=end) for some in most]),
        tuple(tags),
    )
