"""Sampling of subwords for unigram vocabularies (Kudo 2018): the same text cut in another way each time.

SentencePiece can sample too, but its generator cannot be seeded: the same seed gives other cuts in another process.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

META = "\u2581"
"""SentencePiece's sign for a space, at the front of the first piece of a word."""

# SentencePiece's own: a character that must be spelled in bytes is this much less likely than the rarest piece.
_BYTES_PENALTY = 10.0
_REMEMBERED_WORDS = 30_000


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
        # Few words make up most of a text, and all ways to cut one are much more work than a draw among them.
        self._lattice = functools.lru_cache(maxsize=_REMEMBERED_WORDS)(self._arrivals)

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """The ids of one cut; the same text, alpha and seed give the same cut anywhere."""
        generator = random.Random(seed)
        ids: list[int] = []
        for word in text.split(" ") if text else []:
            ids += _draw(self._lattice(META + word, alpha), generator)
        return ids

    def _arrivals(self, word: str, alpha: float) -> list[_Arrivals]:
        """For each position of the word, the pieces that end there, weighed by all ways to come to their start."""
        reached = [0.0]
        arrivals = []
        for end in range(1, len(word) + 1):
            starts, ids, scores = [], [], []
            for start in range(max(0, end - self._longest), end):
                piece = self._pieces.get(word[start:end])
                # A meta symbol inside a word was written by the user, and is no space.
                if piece is None or META in word[max(start, 1) : end]:
                    if end - start > 1:
                        continue
                    spelled, score = [self._byte_ids[byte] for byte in word[start].encode()], self._bytes_score
                else:
                    spelled, score = [piece[0]], piece[1]
                starts.append(start)
                ids.append(spelled)
                scores.append(reached[start] + alpha * score)
            highest = max(scores)
            sums = list(itertools.accumulate(math.exp(score - highest) for score in scores))
            reached.append(highest + math.log(sums[-1]))
            arrivals.append(_Arrivals(starts, ids, sums))
        return arrivals


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
