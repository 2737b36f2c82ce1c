"""Keeping apart what must not meet: held-out pairs and training, test sets and training."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.packing import scramble
from qkv.errors import TextError
from qkv.prepare.clean import FATES, CleanCorpus, Hashes, text_hashes
from qkv.prepare.report import first_places, named

TELLING_WORDS = 6
"""A shorter line may well be said twice in the world; a line of this many words in two corpora is a leak."""

_TRAINING = FATES.index("training")
_LARGEST_SHARE = 10
# Scripts from here on are mostly written without spaces: a character counts as a word.
_UNSPACED = "\u2e80"


def hold_out(corpus: CleanCorpus, wanted: int, seed: int) -> str | None:
    """Sets pairs apart for validation, all of a source together, and drops training pairs that share a target.

    Gives a note where fewer were set apart than wanted.
    """
    available = corpus.count("training")
    if not available:
        return None
    limit = min(wanted, max(1, available // _LARGEST_SHARE))
    threshold = _threshold(corpus, limit, available, seed)
    targets = []
    for rows, hashes, fates in corpus.blocks():
        chosen = np.flatnonzero((fates == _TRAINING) & (_priorities(hashes, seed) < threshold))
        corpus.mark(chosen + rows.start, "held out")
        targets.append(hashes[chosen, 1])
    held_targets = np.unique(np.concatenate(targets))
    for rows, hashes, fates in corpus.blocks():
        shared = np.flatnonzero((fates == _TRAINING) & np.isin(hashes[:, 1], held_targets))
        corpus.mark(shared + rows.start, "target held out")
    if limit < wanted:
        return f"{sum(map(len, targets)):,} pairs are held out instead of {wanted:,}: a tenth of a small corpus"
    return None


@dataclass(frozen=True)
class Overlap:
    """Lines of a test or validation set that stand in the training set too."""

    lines: int
    training_pairs: int
    first: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"lines": self.lines, "training_pairs": self.training_pairs, "first": self.first}

    def warning(self, what: str, *, dropped: bool) -> str | None:
        """One sentence about it, or None where nothing overlaps."""
        if not self.lines:
            return None
        end = "these are left out" if dropped else "--set data.drop_test_lines=true leaves them out"
        return (
            f"{self.lines:,} lines of the {what} set stand in {self.training_pairs:,} training pairs "
            f"({named(self.first, self.lines)}); {end if what == 'test' else 'its scores will flatter'}"
        )


def find_overlap(corpus: CleanCorpus, other: CleanCorpus, *, drop: bool) -> Overlap:
    """Compares `other` with the training pairs: whole pairs always, one side where it has enough words to tell."""
    lines, hashes = _telling(other)
    found: list[list[Hashes]] = [[], [], []]
    pairs = 0
    for rows, sides, fates in corpus.blocks():
        training = fates == _TRAINING
        block = _with_pair(sides, sides)
        inside = np.zeros(len(block), bool)
        for side in (0, 1, 2):
            inside |= np.isin(block[:, side], hashes[:, side]) & training
            found[side].append(np.intersect1d(block[training, side], hashes[:, side]))
        pairs += int(inside.sum())
        if drop:
            corpus.mark(np.flatnonzero(inside) + rows.start, "stands in a test set")
    leaked = np.zeros(len(hashes), bool)
    for side in (0, 1, 2):
        leaked |= np.isin(hashes[:, side], np.concatenate(found[side]))
    places = [other.tally.places.find(int(line)) for line in lines[leaked]]
    return Overlap(len(places), pairs, first_places(places))


def words(text: str) -> int:
    """How many words a text has; where a script has no spaces, how many characters."""
    return max(len(text.split()), sum(character >= _UNSPACED for character in text))


def _telling(corpus: CleanCorpus) -> tuple[npt.NDArray[np.int64], Hashes]:
    """The lines of a set, the hashes of their sides, 0 for a side that is too short to tell, and of both together."""
    lines, hashes = [np.zeros(0, np.int64)], [np.zeros((0, 3), np.uint64)]
    for some in corpus.texts():
        sides = [side for pair in some.text.decode().removesuffix("\n").split("\n") for side in pair.split("\t")]
        telling = np.array([words(side) >= TELLING_WORDS for side in sides]).reshape(-1, 2)
        both = text_hashes(sides).reshape(-1, 2)
        lines.append(some.lines)
        hashes.append(_with_pair(np.where(telling, both, np.uint64(0)), both))
    return np.concatenate(lines), np.concatenate(hashes)


def _with_pair(sides: Hashes, both: Hashes) -> Hashes:
    """The hashes of two sides and a third one of the pair."""
    pair = both[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ both[:, 1]
    return np.column_stack([sides, pair])


def _threshold(corpus: CleanCorpus, limit: int, available: int, seed: int) -> np.uint64:
    """The priority below which a pair is held out: no more than `limit` are, but a source is never torn apart."""
    lowest = np.zeros(0, np.uint64)
    for _, hashes, fates in corpus.blocks():
        lowest = np.sort(np.concatenate([lowest, _priorities(hashes[fates == _TRAINING], seed)]))[: limit + 1]
    if len(lowest) > limit and lowest[limit] > lowest[0]:
        return np.uint64(lowest[limit])
    # The first source alone has more pairs than the limit: it is taken whole, if others remain.
    first = np.uint64(lowest[0])
    same = sum(
        int((_priorities(block[fates == _TRAINING], seed) == first).sum()) for _, block, fates in corpus.blocks()
    )
    if 2 * same > available:
        raise TextError(
            f"the {available:,} pairs that are left have too few different sources to hold any out for validation; "
            "give validation files"
        )
    return np.uint64(first + np.uint64(1))


def _priorities(hashes: Hashes, seed: int) -> npt.NDArray[np.uint64]:
    """A number for each source that looks random and depends on the seed."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little")
    return scramble(hashes[:, 0] ^ np.uint64(salt))
