"""The sentences of a batch in groups, one for each core: an engine of one thread runs them side by side.

Threads that share every product wait for one another hundreds of times a step; groups wait for one another once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from qkv.processors import usable_cores
from qkv.search.engine import Continuations, Engine, Floats, Integers, S

_FEWEST = 4
"""Sentences of a group, at least: with fewer, reading the weights is most of the work, and each core has to do it."""

Result = TypeVar("Result")
Together = Callable[[Sequence[Callable[[], Result]]], list[Result]]


@dataclass(frozen=True)
class Groups(Generic[S]):
    """The states of the groups, how many sentences each has, and how many hypotheses each sentence had last."""

    states: list[S]
    sizes: list[int]
    beam: int = 1

    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Groups[S]:
        sentences = np.arange(sum(self.sizes)) if sentences_N is None else sentences_N
        rows = hypotheses_R.reshape(len(sentences), -1)
        states, sizes = [], []
        for state, (first, last) in zip(self.states, pairwise(accumulate(self.sizes, initial=0)), strict=True):
            low, high = np.searchsorted(sentences, [first, last]).tolist()
            if low < high:
                # Who has lost nobody goes on as it stands, whatever the others lost.
                whole = high - low == last - first
                own = (rows[low:high] - first * self.beam).ravel()
                states.append(state.select(own, None if whole else sentences[low:high] - first))
                sizes.append(high - low)
        return Groups(states, sizes, rows.shape[1])


class SideBySide(Generic[S]):
    """An engine over another, which may be asked by several threads at once."""

    def __init__(self, engine: Engine[S], *, cores: int | None = None) -> None:
        self._engine = engine
        self._cores = cores or usable_cores()
        self._threads = ThreadPoolExecutor(self._cores)

    @property
    def looks_when_read(self) -> bool:
        return self._engine.looks_when_read

    def start(
        self, sources: Sequence[Sequence[int]], *, wanted: Sequence[Collection[int]] = (), looks: bool = False
    ) -> Groups[S]:
        count = max(1, min(self._cores, len(sources) // _FEWEST))
        places = np.array_split(np.arange(len(sources)), count)
        parts = [([sources[n] for n in some], [wanted[n] for n in some] if wanted else ()) for some in places]
        states = self._together([partial(self._engine.start, part, wanted=own, looks=looks) for part, own in parts])
        return Groups(states, [*map(len, places)])

    def step(self, token_R: Integers, groups: Groups[S]) -> tuple[Joined, Groups[S]]:
        beam = len(token_R) // sum(groups.sizes)
        bounds = [beam * first for first in accumulate(groups.sizes, initial=0)]
        stepped = self._together(
            [
                partial(self._engine.step, token_R[first:last], state)
                for state, (first, last) in zip(groups.states, pairwise(bounds), strict=True)
            ]
        )
        joined = Joined([told for told, _ in stepped], bounds, self._together)
        return joined, Groups([state for _, state in stepped], groups.sizes, beam)

    def _together(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        others = [self._threads.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(other.result() for other in others)]


class Joined:
    """What the groups say of their rows, one after the other."""

    def __init__(self, parts: Sequence[Continuations], bounds: list[int], together: Together[Any]) -> None:
        self._parts = parts
        self._bounds = bounds
        self._together = together

    @property
    def looked_RK(self) -> Floats | None:
        looked = [part.looked_RK for part in self._parts]
        some = [one for one in looked if one is not None]
        if not some:
            return None
        # Each group's sources are as long as its longest.
        width = max(one.shape[1] for one in some)
        return np.concatenate([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in some])

    def forbid(self, rows: Integers, tokens: Integers) -> None:
        rows, tokens = (one.ravel() for one in np.broadcast_arrays(rows, tokens))
        for part, first, own in self._split(rows):
            part.forbid(rows[own] - first, tokens[own])

    def best(self, count: int) -> tuple[Floats, Integers]:
        found = self._together([partial(part.best, count) for part in self._parts])
        # A shortlist may have fewer than that.
        width = max(gain.shape[1] for gain, _ in found)
        gains = [np.pad(gain, ((0, 0), (0, width - gain.shape[1])), constant_values=-np.inf) for gain, _ in found]
        tokens = [np.pad(token, ((0, 0), (0, width - token.shape[1]))) for _, token in found]
        return np.concatenate(gains), np.concatenate(tokens)

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        found = np.empty(len(rows), np.float32)
        for part, first, own in self._split(rows):
            found[own] = part.of(rows[own] - first, tokens[own])
        return found

    def everything(self) -> Floats:
        return np.concatenate([part.everything() for part in self._parts])

    def _split(self, rows: Integers) -> list[tuple[Continuations, int, NDArray[np.bool_]]]:
        """Each group, its first row, and which of these rows are its own."""
        return [
            (part, first, (first <= rows) & (rows < last))
            for part, (first, last) in zip(self._parts, pairwise(self._bounds), strict=True)
        ]
