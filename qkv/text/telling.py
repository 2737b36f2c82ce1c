"""Telling languages apart by their words, as a corpus itself uses them: no table of languages is needed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_WORD = re.compile(r"[^\W\d_]+")
_KNOWN_WORDS = 10_000
"""Of each language, the most frequent ones; what is rarer tells of names and subjects, and not of languages."""
_FLOOR = 1e-6
_CERTAIN = 6.0
"""How much likelier, in nats, a text must be in another language; and on average a word, which lets a quotation or the
name of a product pass."""
_CERTAIN_A_WORD = 1.0


@dataclass(frozen=True)
class Telling:
    """How likely each known word is in each of some languages, as logarithms."""

    languages: tuple[str, ...]
    words: Mapping[str, tuple[float, ...]]

    @classmethod
    def learn(cls, texts: Mapping[str, Iterable[str]]) -> Telling:
        """Counts the words of texts in each language; a few wrong ones among them do no harm."""
        counts = [Counter(word for text in some for word in _words(text)) for some in texts.values()]
        totals = [max(1, count.total()) for count in counts]
        frequent = dict.fromkeys(word for count in counts for word, _ in count.most_common(_KNOWN_WORDS))
        words = {
            word: tuple(math.log(count[word] / total + _FLOOR) for count, total in zip(counts, totals, strict=True))
            for word in frequent
        }
        return cls(tuple(texts), words)

    def is_foreign(self, text: str, language: str) -> bool:
        """Whether a text is much more likely in another of the languages."""
        words = _words(text)
        known = [found for word in words if (found := self.words.get(word)) is not None]
        if not known:
            return False
        sums = [sum(column) for column in zip(*known, strict=True)]
        ahead = max(sums) - sums[self.languages.index(language)]
        return bool(ahead > max(_CERTAIN, _CERTAIN_A_WORD * len(words)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
