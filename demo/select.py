"""Cuts the demo's corpus out of Tatoeba's English-French pairs: short sentences, and a test set apart from them.

    python demo/select.py tatoeba.en-fr.tsv.xz

writes demo/train.en-fr.tsv.xz and demo/test.en-fr.tsv. Which sources are tested is decided by a hash of the sentence,
so it never changes; no sentence of the test set, English or French, stands in the training set.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
from pathlib import Path

LONGEST = 12
"""Words on either side."""
TESTED = 1000


def main() -> None:
    with lzma.open(sys.argv[1], "rt", encoding="utf-8", newline="\n") as file:
        pairs = [tuple(line.rstrip("\n").split("\t")[:2]) for line in file]
    short = [pair for pair in pairs if max(len(side.split()) for side in pair) <= LONGEST]
    first_of_source = {source: (source, target) for source, target in reversed(short)}
    candidates = [pair for pair in first_of_source.values() if len(pair[0].split()) >= 3]
    test = sorted(candidates, key=lambda pair: hashlib.sha256(pair[0].encode()).digest())[:TESTED]
    sources, targets = {source for source, _ in test}, {target for _, target in test}
    train = [pair for pair in short if pair[0] not in sources and pair[1] not in targets]
    here = Path(__file__).parent
    with lzma.open(here / "train.en-fr.tsv.xz", "wt", encoding="utf-8", newline="\n", preset=9) as file:
        file.writelines(f"{source}\t{target}\n" for source, target in train)
    with (here / "test.en-fr.tsv").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{source}\t{target}\n" for source, target in test)
    print(f"{len(train):,} pairs to train on, {len(test):,} to test with")


if __name__ == "__main__":
    main()
