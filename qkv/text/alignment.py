"""Which words of the source each word of a translation came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qkv.text.words import Span, words

_RESTING = 2
"""Heads that have nothing to look for look at the end or at a tag, and of several some always do: a word is where its
translation came from unless twice as much is looked at these."""


@dataclass(frozen=True)
class Link:
    """A word of the translation, the word of the source it came from, and how sure that is, from 0 to 1."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class Alignment:
    """The words of both sides, as texts and as spans of them, and the links between them."""

    source_text: str
    target_text: str
    source: tuple[Span, ...]
    target: tuple[Span, ...]
    links: tuple[Link, ...]

    def in_words(self) -> str:
        """The words that are linked, source first: `house=Haus`."""
        return " ".join(
            f"{self.source_text[slice(*self.source[link.source])]}={self.target_text[slice(*self.target[link.target])]}"
            for link in self.links
        )

    def __str__(self) -> str:
        """As other tools write it: `0-0 1-2`, source first."""
        return " ".join(f"{link.source}-{link.target}" for link in self.links)


def align(
    source: str,
    source_tokens: Sequence[Span],
    target: str,
    target_tokens: Sequence[Span],
    looked: Sequence[Sequence[float]],
) -> Alignment:
    """Links each word of the target to the word of the source that it looked at most.

    `looked` has a row for each token of the target and a column for each of the source; more columns, such as that of
    the source's end, stand for nothing that is a word: who looks there by far the most has no link.
    """
    source_words, target_words = tuple(words(source)), tuple(words(target))
    source_of = words_of(source_tokens, source_words)
    target_of = words_of(target_tokens, target_words)
    links = []
    for target_word in range(len(target_words)):
        rows = [row for row, covered in zip(looked, target_of, strict=True) if target_word in covered]
        if not rows:
            continue
        share = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        by_word = [0.0] * len(source_words)
        for token, covered in enumerate(source_of):
            for word in covered:
                by_word[word] += share[token] / len(covered)
        elsewhere = sum(share) - sum(by_word)
        best = max(range(len(by_word)), key=by_word.__getitem__, default=None)
        if best is not None and _RESTING * by_word[best] > elsewhere:
            links.append(Link(best, target_word, round(by_word[best], 4)))
    return Alignment(source, target, source_words, target_words, tuple(links))


def word_scores(tokens: Sequence[Span], scores: Sequence[float], of_text: Sequence[Span]) -> tuple[float, ...]:
    """The log-probability of each word, by those of its tokens; a token of several words counts for each."""
    totals = [0.0] * len(of_text)
    for score, covered in zip(scores, words_of(tokens, of_text), strict=True):
        for word in covered:
            totals[word] += score
    return tuple(totals)


def words_of(tokens: Sequence[Span], of_text: Sequence[Span]) -> list[list[int]]:
    """For each token, the words it is a part of."""
    found: list[list[int]] = []
    first = 0
    for begin, end in tokens:
        while first < len(of_text) and of_text[first][1] <= begin:
            first += 1
        covered = []
        word = first
        while word < len(of_text) and of_text[word][0] < end:
            covered.append(word)
            word += 1
        found.append(covered)
    return found
