"""How a translator asks the searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from qkv.config import SearchConfig
from qkv.errors import RuleError
from qkv.search.beam import Beam, Coverage, beam_search, walk
from qkv.search.engine import Engine
from qkv.search.forced import forced
from qkv.search.hypothesis import Hypothesis, Penalty, paper_penalty
from qkv.search.record import Record
from qkv.search.rules import kept
from qkv.search.sample import Sampling, sample
from qkv.search.whole import WholeSearch
from qkv.translate.asked import Asked, batches
from qkv.translate.looking import Look, Lookable, Sought
from qkv.translate.options import Controls
from qkv.translate.translation import Translation
from qkv.translate.wording import Wording

_LEAST_BEAM_FOR_TERMS = 8
"""In a narrower one, hypotheses that are in the middle of their terms leave no place for those that go on with the
sentence first: terms would come at the very beginning, and nothing behind them."""
_NEW_WORDS = 4
"""How many tokens to look at for one that begins a word."""
AT_ONCE = 16_384
"""Sentences that are given to a device which searches by itself: it fills places that become free from these."""


@dataclass(frozen=True)
class Searcher:
    """An engine, its words and its settings; and who searches without being asked for every step, if there is one."""

    engine: Engine[Any]
    wording: Wording
    search: SearchConfig
    whole: WholeSearch | None = None
    abandoned: Callable[[int], bool] | None = None
    """Whether nobody waits any more for the text of this number: a beam gives it up, and finds nothing for it."""
    record: Record | None = None
    """Who is told what a beam considers, where one text is asked for."""
    lookable: Lookable | None = None
    """What translations need to be looked into; None where they cannot be."""

    def batches(self, asked: Sequence[Asked], *, rows: int) -> Iterator[list[Asked]]:
        """What is looked for together, each sentence in so many rows."""
        return batches(asked, rows=rows, positions=self.search.batch_tokens)

    def helpings(self, asked: Sequence[Asked], controls: Controls, *, looks: bool) -> Iterator[Sequence[Asked]]:
        """What is given to a beam at once: enough that nobody has to wait for more, and little enough to be told of."""
        if self._searches_whole(controls, looks=looks):
            return (asked[first : first + AT_ONCE] for first in range(0, len(asked), AT_ONCE))
        return self.batches(asked, rows=self.search.beam)

    def look(
        self, asked: Sequence[Asked], controls: Controls, *, keep: int, looks: bool = False
    ) -> list[list[Hypothesis]]:
        """The best that a beam finds for each, which are told apart by their numbers.

        Without terms first: many a translation has them by itself, and is then what it would be without them. What is
        at fault is looked for once more, and what has fewer faults is taken.
        """
        find = partial(self._look, controls=controls, keep=keep, looks=looks)
        strictly = dataclasses.replace(self, search=self._wide)
        find_strictly = partial(strictly._look, controls=controls, keep=keep, looks=looks)
        found = find(asked)
        held = {
            place: one.strictly()
            for place, (one, some) in enumerate(zip(asked, found, strict=True))
            if one.stricter is not None and not all(kept(one.stricter, best.ids) for best in some)
        }
        for place, some in zip(held, find_strictly([*held.values()]), strict=True):
            found[place] = some
        mended = {
            place: one.strictly().held_to(rule)
            for place, (one, some) in enumerate(zip(asked, found, strict=True))
            if some and (rule := self.wording.mending(one, some[0])) is not None
        }
        # What is first may keep to the letter of a rule alone: 5 205 has 205 in it.
        for place, some in _possible(mended, partial(find_strictly, keep=strictly.search.beam)).items():
            before = self.wording.faulty(asked[place], found[place][0])
            ranked = sorted(some, key=partial(self.wording.faulty, asked[place]))
            if ranked and self.wording.faulty(asked[place], ranked[0]) < before:
                found[place] = ranked[:keep]
        return found

    @property
    def _wide(self) -> SearchConfig:
        return dataclasses.replace(self.search, beam=max(self.search.beam, _LEAST_BEAM_FOR_TERMS))

    def _look(self, asked: Sequence[Asked], *, controls: Controls, keep: int, looks: bool) -> list[list[Hypothesis]]:
        free = [one for one in asked if one.rule is None] if self._searches_whole(controls, looks=looks) else []
        found = dict(zip((one.number for one in free), self._whole(free, keep=keep), strict=True))
        others = [one for one in asked if one.number not in found]
        for batch in self.batches(others, rows=self.search.beam):
            hypotheses = self._step_by_step(batch, controls, keep=keep, looks=looks)
            found |= zip((one.number for one in batch), hypotheses, strict=True)
        return [found[one.number] for one in asked]

    def _searches_whole(self, controls: Controls, *, looks: bool) -> bool:
        return self.whole is not None and not looks and not controls.coverage_penalty and self.record is None

    def _whole(self, asked: Sequence[Asked], *, keep: int) -> list[list[Hypothesis]]:
        if self.whole is None or not asked:
            return []
        limits = self.wording.limits(self._room(asked))
        sources = [one.source for one in asked]
        return self.whole.find(
            sources,
            limits,
            width=self.search.beam,
            penalty=self._penalty,
            keep=keep,
            abandoned=self._abandoned(asked),
        )

    def _step_by_step(
        self, asked: Sequence[Asked], controls: Controls, *, keep: int, looks: bool
    ) -> list[list[Hypothesis]]:
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
                abandoned=self._abandoned(asked),
                record=self.record,
            )

    def _abandoned(self, asked: Sequence[Asked]) -> Callable[[int], bool] | None:
        """The same question by the place of a sentence among these."""
        abandoned = self.abandoned
        return None if abandoned is None else lambda sentence: abandoned(asked[sentence].number)

    def draw(
        self, asked: Sequence[Asked], sampling: Sampling, *, seed: int, count: int, looks: bool = False
    ) -> list[list[Hypothesis]]:
        """So many for each as they happen to be drawn, the likeliest first."""
        repeated = [one.strictly() for one in asked for _ in range(count)]
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

    def grow(self, asked: Asked, controls: Controls) -> tuple[Beam, Iterator[int]]:
        """A greedy search, and its tokens as they are found."""
        coverage = _coverage([asked], controls)
        beam = Beam(
            self.wording.limits(self._room([asked])),
            width=1,
            penalty=self._penalty,
            rules=[asked.rule],
            coverage=coverage,
        )
        moments = walk(self.engine, self._start([asked], looks=coverage is not None), beam)
        # In its last moment the search ends; the other token that was looked at then is none of what it found.
        return beam, (int(moment.token_NB[0, 0]) for moment in moments if beam.sentences.size)

    def following(self, asked: Asked, begun: Sequence[int], *, count: int, new_word: bool) -> list[int]:
        """The tokens that may go on behind what is begun, with a new word if that is said, the likeliest first.

        None where nobody waits for it any more.
        """
        limits = self.wording.limits(self._room([asked]))
        state = self._start([asked])
        for token in (limits.begin, *begun):
            if self.abandoned is not None and self.abandoned(asked.number):
                return []
            continuations, state = self.engine.step(np.array([token], dtype=np.int64), state)
        continuations.forbid(np.array([[0]]), np.array([[*limits.forbidden, limits.end]]))
        gain_RC, token_RC = continuations.best(count * (_NEW_WORDS if new_word else 1))
        likely = [int(token) for gain, token in zip(gain_RC[0], token_RC[0], strict=True) if np.isfinite(gain)]
        surface = self.wording.tokenizer.surface
        return [token for token in likely if not new_word or surface(token).startswith(b" ")][:count]

    def told(
        self, asked: Asked, found: Hypothesis, *, aligned: bool = False, sought: Sought | None = None
    ) -> Translation:
        """What was found as text, its words linked to those of the source where that is wanted."""
        if aligned:
            told = self.wording.aligned(asked, found, looks_when_read=self.engine.looks_when_read)
        else:
            told = self.wording.translation(asked, found)
        if self.lookable is None:
            return told
        look = Look(self, self.lookable, asked, tuple(found.ids), found.complete, sought)
        return dataclasses.replace(told, look=look)

    def read(self, asked: Sequence[Asked], *, looks: bool = False) -> list[Hypothesis]:
        """The translations that were given, as if they had been found; whatever their length, if they can be read."""
        limits = self.wording.limits([self.wording.longest] * len(asked))
        state = self._start(asked, looks=looks)
        return forced(self.engine, state, limits, [one.target for one in asked], penalty=self._penalty)

    @property
    def _penalty(self) -> Penalty:
        return paper_penalty(self.search.length_penalty)

    def _start(self, asked: Sequence[Asked], *, looks: bool = False) -> Any:
        wanted = [one.wanted for one in asked]
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


def _possible(
    asked: Mapping[int, Asked], find: Callable[[Sequence[Asked]], list[list[Hypothesis]]]
) -> dict[int, list[Hypothesis]]:
    """What is found for each that a rule leaves anything for."""
    left = dict(asked)
    while left:
        try:
            return dict(zip(left, find([*left.values()]), strict=True))
        except RuleError as error:
            left = {place: one for place, one in left.items() if one.number != error.sentence}
    return {}


@contextmanager
def _numbered(asked: Sequence[Asked]) -> Iterator[None]:
    """A search counts the sentences that it is given; who asked counts the texts."""
    try:
        yield
    except RuleError as error:
        raise RuleError(asked[error.sentence].number) from error
