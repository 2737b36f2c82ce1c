"""Learns which subwords translations of a subword have, by counting which stand in pairs together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qkv.data.corpus import Corpus
from qkv.engines.shortlist import Shortlist

LIKELY = 64
FREQUENT = 1000
_LINKS = 40_000_000
"""So many links between a token of a source and one of its target are counted at most, of pairs drawn evenly."""
_AT_ONCE = 4_000_000


def learn_shortlist(
    corpus: Corpus, vocabulary: int, *, always: list[int], likely: int = LIKELY, frequent: int = FREQUENT
) -> Shortlist:
    """The `likely` most likely translations of every subword, and the `frequent` most frequent subwords of targets.

    `always` may be written whatever the source says: the end of a sentence.
    """
    target_count = np.bincount(corpus.target_ids, minlength=vocabulary)
    most = np.argsort(-target_count, kind="stable")[:frequent]
    link, count = _links(corpus, vocabulary)
    source, target = link // vocabulary, link % vocabulary
    # The cosine of where both stand: what is frequent everywhere is no one's translation, and nor is what is rare here.
    score = count / np.sqrt(target_count[target])
    order = np.lexsort((-score, source))
    source, target = source[order], target[order]
    first = np.searchsorted(source, np.arange(vocabulary))
    rank = np.arange(len(source)) - first[source]
    kept = rank < likely
    rows = np.full((vocabulary, likely), always[0], np.uint32)
    rows[source[kept], rank[kept]] = target[kept]
    return Shortlist(rows, np.union1d(most[target_count[most] > 0], always))


def _links(corpus: Corpus, vocabulary: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of subwords as one number each, and how often they stood together."""
    links_of_pair = corpus.source_lengths() * corpus.target_lengths()
    stride = max(1, -(-int(links_of_pair.sum()) // _LINKS))
    merged = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[NDArray[np.int64]] = []
    held = 0
    for pair in range(0, len(corpus), stride):
        source, target = (np.unique(ids) for ids in corpus.pair(pair))
        waiting.append((source[:, None] * vocabulary + target).ravel())
        held += len(waiting[-1])
        if held > _AT_ONCE:
            merged, waiting, held = _merged(merged, waiting), [], 0
    return _merged(merged, waiting) if waiting else merged


def _merged(
    before: tuple[NDArray[np.int64], NDArray[np.int64]], links: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    link, count = np.unique(np.concatenate(links), return_counts=True)
    every, place = np.unique(np.concatenate([before[0], link]), return_inverse=True)
    return every, np.bincount(place, weights=np.concatenate([before[1], count])).astype(np.int64)
