"""Made-up models to search: the logits of every prefix are drawn once and for all, so that all can be enumerated."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from qkv.search.engine import Floats, Integers, Known
from qkv.search.hypothesis import Hypothesis, Limits, Penalty

END, BEGIN = 0, 9
"""The begin is no word of the vocabulary: it is read, and can never be written."""


class Prefixes(NamedTuple):
    """A state that remembers what was written, as a check that searches select what they say they do."""

    sentences: list[int]
    written: list[tuple[int, ...]]

    @classmethod
    def of(cls, *sentences: int) -> Self:
        return cls([*sentences], [()] * len(sentences))

    def select(self, hypotheses: Integers, sentences: Integers | None) -> Prefixes:
        return Prefixes(
            self.sentences if sentences is None else [self.sentences[n] for n in sentences.tolist()],
            [self.written[hypothesis] for hypothesis in hypotheses.tolist()],
        )

    def after(self, token_R: Integers, begin: int) -> Prefixes:
        """The same with one token more each; the one that begins is not written."""
        return self._replace(
            written=[
                prefix if token == begin else (*prefix, token)
                for prefix, token in zip(self.written, token_R.tolist(), strict=True)
            ]
        )

    def each(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Sentence and prefix of every hypothesis: equally many of each sentence, one sentence after the other."""
        beams = len(self.written) // len(self.sentences)
        return ((self.sentences[row // beams], prefix) for row, prefix in enumerate(self.written))


class MadeUp:
    """A vocabulary of so many words, the end among them; sentences are told apart by a number."""

    looks_when_read = False

    def __init__(self, vocabulary: int, *, end_bonus: float = 0.0, sharpness: float = 1.0) -> None:
        self._vocabulary = vocabulary
        self._end_bonus = end_bonus
        self._sharpness = sharpness
        self.steps: list[Prefixes] = []
        """What it was asked to continue, step by step."""

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
        draw = random.Random(f"{sentence} {prefix}")
        logits = np.array([draw.gauss(0, self._sharpness) for _ in range(self._vocabulary)], dtype=np.float32)
        logits[END] += self._end_bonus
        return logits

    def step(self, token_R: Integers, state: Prefixes) -> tuple[Known, Prefixes]:
        self.steps.append(state)
        state = state.after(token_R, BEGIN)
        return Known(np.stack([self.gains(*one) for one in state.each()])), state

    def start(
        self,
        sources: Sequence[Sequence[int]],
        *,
        wanted: Sequence[Collection[int]] = (),  # noqa: ARG002
        looks: bool = False,  # noqa: ARG002
    ) -> Prefixes:
        """Sources are the sentences' numbers."""
        return Prefixes.of(*(number for (number,) in sources))

    def gains(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
        """The log-probability of each word after these."""
        logits = self.logits(sentence, prefix)
        gains: Floats = logits - np.logaddexp.reduce(logits)
        return gains

    def log_probability(self, sentence: int, ids: list[int], *, complete: bool) -> float:
        """Of these words, and of the end after them if it was written."""
        words = [*ids, END] if complete else ids
        return sum(float(self.gains(sentence, tuple(ids[:place]))[word]) for place, word in enumerate(words))

    def everything(self, sentence: int, limits: Limits, longest: int, penalty: Penalty) -> list[Hypothesis]:
        """All that could be written, best first."""
        return sorted(self._everything(sentence, limits, longest, penalty), key=lambda one: -one.score)

    def _everything(self, sentence: int, limits: Limits, longest: int, penalty: Penalty) -> Iterator[Hypothesis]:
        words = [word for word in range(self._vocabulary) if word not in (END, *limits.forbidden)]
        for length in range(1, longest + 1):
            for ids in itertools.product(words, repeat=length - 1):
                yield self.hypothesis(sentence, [*ids], penalty(length), complete=True)
        for ids in itertools.product(words, repeat=longest):
            yield self.hypothesis(sentence, [*ids], penalty(longest), complete=False)

    def hypothesis(self, sentence: int, ids: list[int], penalty: float, *, complete: bool) -> Hypothesis:
        log_probability = self.log_probability(sentence, ids, complete=complete)
        return Hypothesis(ids, log_probability, log_probability / penalty, complete)


class Scripted(MadeUp):
    """One word and the end, whose probability depends only on how many words there are; the last one given stays."""

    def __init__(self, *ends: float) -> None:
        super().__init__(2)
        self._ends = ends

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> Floats:  # noqa: ARG002
        end = self._ends[min(len(prefix), len(self._ends) - 1)]
        return np.log(np.array([end, 1 - end], dtype=np.float32))
