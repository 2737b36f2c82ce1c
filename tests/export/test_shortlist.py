"""What is learned of which subwords translate which."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qkv.data.corpus import Corpus, CorpusWriter
from qkv.export.shortlist import learn_shortlist

VOCABULARY, END = 60, 2


def corpus(folder: Path) -> Corpus:
    """Every word of 10 to 29 is translated by the one thirty above it, in any order, and a 5 stands in all targets."""
    random = np.random.default_rng(1)
    with CorpusWriter(folder, "train", vocabulary=VOCABULARY) as writer:
        for line in range(400):
            source = random.integers(10, 30, 6)
            writer.append(source.tolist(), [5, *random.permutation(source + 30).tolist()], line)
    return Corpus.open(folder, "train")


def test_the_likeliest_translation_comes_first(tmp_path: Path) -> None:
    found = learn_shortlist(corpus(tmp_path), VOCABULARY, end=END, likely=3, frequent=1)
    assert found.likely[10:30, 0].tolist() == [*range(40, 60)]
    assert found.frequent.tolist() == [END, 5]
    # Of what was never seen nothing is known.
    assert found.likely[50].tolist() == [END] * 3
