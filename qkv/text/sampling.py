"""Sampling of subwords for unigram vocabularies (Kudo 2018): the same text cut in another way each time.

SentencePiece can sample too, but its generator cannot be seeded: the same seed gives other cuts in another process.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

META = "\u2581"
"""SentencePiece's sign for a space, at the front of the first piece of a word."""

# SentencePiece's own: a character that must be spelled in bytes is this much less likely than the rarest piece.
_BYTES_PENALTY = 10.0
_REMEMBERED_WORDS = 20_000


class _Arrivals(NamedTuple):
    """All pieces that end at one position of a word: where each begins, its ids, and the running sum of its chance."""

    starts: list[int]
    ids: list[list[int]]
    chances: list[float]


class Sampler:
    """Draws ways to cut a text into pieces, each word by itself since no piece reaches over a space."""

    def __init__(self, pieces: Mapping[str, tuple[int, float]], byte_ids: Sequence[int]) -> None:
        self._pieces = pieces
        self._byte_ids = byte_ids
        self._longest = max(map(len, pieces))
        self._bytes_score = min(score for _, score in pieces.values()) - _BYTES_PENALTY
        self._remembered: dict[tuple[str, float], list[_Arrivals]] = {}

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """The ids of one cut; the same text, alpha and seed give the same cut anywhere."""
        generator = random.Random(seed)
        ids: list[int] = []
        for word in text.split(" ") if text else []:
            ids += _draw(self._lattice(word, alpha), generator)
        return ids

    def _lattice(self, word: str, alpha: float) -> list[_Arrivals]:
        lattice = self._remembered.get((word, alpha))
        if lattice is None:
            if len(self._remembered) >= _REMEMBERED_WORDS:
                self._remembered.clear()
            lattice = self._remembered[word, alpha] = self._arrivals(META + word, alpha)
        return lattice

    def _arrivals(self, word: str, alpha: float) -> list[_Arrivals]:
        """For each position of the word, the pieces that end there, weighed by all ways to come to their start."""
        reached = [0.0]
        arrivals = []
        for end in range(1, len(word) + 1):
            starts, ids, scores = [], [], []
            for start in range(max(0, end - self._longest), end):
                if (piece := self._piece(word, start, end)) is not None:
                    starts.append(start)
                    ids.append(piece[0])
                    scores.append(reached[start] + alpha * piece[1])
            highest = max(scores)
            sums = list(itertools.accumulate(math.exp(score - highest) for score in scores))
            reached.append(highest + math.log(sums[-1]))
            arrivals.append(_Arrivals(starts, ids, sums))
        return arrivals

    def _piece(self, word: str, start: int, end: int) -> tuple[list[int], float] | None:
        part = word[start:end]
        # A meta symbol inside a word was written by the user, and is no space.
        if META not in part[start == 0 :] and (piece := self._pieces.get(part)) is not None:
            return [piece[0]], piece[1]
        if len(part) == 1:
            return [self._byte_ids[byte] for byte in part.encode()], self._bytes_score
        return None


def _draw(lattice: list[_Arrivals], generator: random.Random) -> list[int]:
    cut: list[list[int]] = []
    end = len(lattice)
    while end:
        arrivals = lattice[end - 1]
        chosen = bisect.bisect_right(arrivals.chances, generator.random() * arrivals.chances[-1])
        chosen = min(chosen, len(arrivals.starts) - 1)
        cut.append(arrivals.ids[chosen])
        end = arrivals.starts[chosen]
    return [token for ids in reversed(cut) for token in ids]
