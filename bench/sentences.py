"""Made-up parallel sentences with lengths as in news text, for measuring speed without a corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qkv.data.corpus import Corpus, CorpusWriter

SPECIAL = 4
"""Ids below this are padding, begin, end and unknown."""


def write_corpus(directory: Path, *, pairs: int, vocabulary: int, longest: int, seed: int = 0) -> Corpus:
    """Pairs of random ids; a source has 28 tokens on average, its target nearly as many."""
    random = np.random.default_rng(seed)
    source_lengths = np.clip(np.exp(random.normal(3.2, 0.5, pairs)).astype(int), 3, longest)
    target_lengths = np.clip((source_lengths * np.exp(random.normal(0, 0.15, pairs))).astype(int), 3, longest)
    with CorpusWriter(directory, "train", vocabulary=vocabulary) as writer:
        for line, (source, target) in enumerate(zip(source_lengths, target_lengths, strict=True), start=1):
            writer.append(
                random.integers(SPECIAL, vocabulary, source).tolist(),
                random.integers(SPECIAL, vocabulary, target).tolist(),
                line,
            )
    return Corpus.open(directory, "train")
