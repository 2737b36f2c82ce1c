"""How a translator asks the searches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from qkv.config import SearchConfig
from qkv.errors import RuleError
from qkv.search.beam import Beam, Coverage, beam_search, walk
from qkv.search.engine import Engine
from qkv.search.forced import forced
from qkv.search.hypothesis import Hypothesis, Penalty, paper_penalty
from qkv.search.sample import Sampling, sample
from qkv.translate.asked import Asked, batches
from qkv.translate.options import Controls
from qkv.translate.translation import Translation
from qkv.translate.wording import Wording


@dataclass(frozen=True)
class Searcher:
    """An engine, its words and its settings."""

    engine: Engine[Any]
    wording: Wording
    search: SearchConfig

    def batches(self, asked: Sequence[Asked], *, rows: int) -> Iterator[list[Asked]]:
        """What is looked for together, each sentence in so many rows."""
        return batches(asked, rows=rows, positions=self.search.batch_tokens)

    def look(
        self, asked: Sequence[Asked], controls: Controls, *, keep: int, looks: bool = False
    ) -> list[list[Hypothesis]]:
        """The best that a beam finds for each."""
        coverage = _coverage(asked, controls)
        with _numbered(asked):
            return beam_search(
                self.engine,
                self._start(asked, looks=looks or coverage is not None),
                self.wording.limits(self._room(asked)),
                width=self.search.beam,
                penalty=self._penalty,
                keep=keep,
                rules=[one.rule for one in asked],
                coverage=coverage,
            )

    def draw(
        self, asked: Sequence[Asked], sampling: Sampling, *, seed: int, count: int, looks: bool = False
    ) -> list[list[Hypothesis]]:
        """So many for each as they happen to be drawn, the likeliest first."""
        repeated = [one for one in asked for _ in range(count)]
        with _numbered(repeated):
            drawn = sample(
                self.engine,
                self._start(repeated, looks=looks),
                self.wording.limits(self._room(repeated)),
                sampling,
                seeds=[(seed, number, one.seed) for one in asked for number in range(count)],
                rules=[one.rule for one in repeated],
            )
        groups = [drawn[first : first + count] for first in range(0, len(drawn), count)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    def grow(self, asked: Asked, controls: Controls) -> Generator[int, None, Hypothesis]:
        """The tokens of a greedy search as they are found; returns what it found."""
        coverage = _coverage([asked], controls)
        beam = Beam(
            self.wording.limits(self._room([asked])),
            width=1,
            penalty=self._penalty,
            rules=[asked.rule],
            coverage=coverage,
        )
        for moment in walk(self.engine, self._start([asked], looks=coverage is not None), beam):
            # In the last moment it ends; the other word that was looked at is none of it.
            if beam.sentences.size:
                yield int(moment.token_NB[0, 0])
        ((best,),) = beam.best()
        return best

    def told(self, asked: Asked, found: Hypothesis, *, aligned: bool) -> Translation:
        """What was found as text, its words linked to those of the source where that is wanted."""
        if not aligned:
            return self.wording.translation(found)
        return self.wording.aligned(asked.source, found, looks_when_read=self.engine.looks_when_read)

    def read(self, asked: Sequence[Asked], *, looks: bool = False) -> list[Hypothesis]:
        """The translations that were given, as if they had been found; whatever their length, if they can be read."""
        limits = self.wording.limits([self.wording.longest] * len(asked))
        state = self._start(asked, looks=looks)
        return forced(self.engine, state, limits, [one.target for one in asked], penalty=self._penalty)

    @property
    def _penalty(self) -> Penalty:
        return paper_penalty(self.search.length_penalty)

    def _start(self, asked: Sequence[Asked], *, looks: bool = False) -> Any:
        wanted = {token for one in asked for token in one.wanted}
        return self.engine.start([one.source for one in asked], wanted=wanted, looks=looks)

    def _room(self, asked: Sequence[Asked]) -> list[int]:
        """How many tokens each translation may have."""
        extra = self.search.extra_length
        return [
            min(len(one.source) + extra + (one.rule.left if one.rule is not None else 0), self.wording.longest)
            for one in asked
        ]


def _coverage(asked: Sequence[Asked], controls: Controls) -> Coverage | None:
    if not controls.coverage_penalty:
        return None
    return Coverage(controls.coverage_penalty, [len(one.source) for one in asked])


@contextmanager
def _numbered(asked: Sequence[Asked]) -> Iterator[None]:
    """A search counts the sentences that it is given; who asked counts the texts."""
    try:
        yield
    except RuleError as error:
        raise RuleError(asked[error.sentence].number) from error
