"""What is wanted of all texts of a call, and how it is found: searched for or drawn, then chosen from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qkv.errors import ConfigError
from qkv.search.hypothesis import Hypothesis
from qkv.search.sample import Sampling
from qkv.translate.asked import Asked
from qkv.translate.choosing import by_likeness, reranked, told_apart
from qkv.translate.looking import Sought
from qkv.translate.options import Controls, Mbr, Rerank
from qkv.translate.searcher import Searcher
from qkv.translate.translation import Translation

_SEEDS = 1 << 63


@dataclass(frozen=True)
class Wanted:
    """What is wanted of each text."""

    controls: Controls
    alternatives: int
    """How many others to give."""
    sampling: Sampling | None
    """How to draw; None searches for the best."""
    seed: int
    mbr: Mbr | None
    rerank: Rerank | None
    align: bool

    @property
    def best(self) -> int:
        """How many to give in all."""
        return self.alternatives + 1


def require_possible(wanted: Wanted, beam: int) -> None:
    """Refuses what cannot be done, or not together."""
    best, mbr = wanted.best, wanted.mbr
    if best < 1:
        raise ConfigError(f"{wanted.alternatives} alternatives cannot be; give 0 or more")
    if wanted.sampling is None and best > beam:
        raise ConfigError(f"the {best} best need a beam of at least {best}, not {beam}")
    if mbr is not None and best > mbr.samples:
        raise ConfigError(f"the {best} best need at least {best} samples, not {mbr.samples}")
    if wanted.rerank is not None and wanted.sampling is not None:
        raise ConfigError("what is drawn is not reranked; leave out sampling and mbr, or rerank")
    if not 0 <= wanted.seed < _SEEDS:
        raise ConfigError(f"the seed is {wanted.seed}; it must be at least 0 and below 2^63")


@dataclass(frozen=True)
class Finder:
    """Finds what is wanted of texts, some at a time."""

    searcher: Searcher
    wanted: Wanted
    restyled: bool
    """Whether some are written otherwise than the model writes: two that differ by marks or capitals alone are one."""

    def helpings(self, asked: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
        """Those that are looked for together."""
        if self.wanted.sampling is None:
            return self.searcher.helpings(asked, self.wanted.controls, looks=self.wanted.align)
        return self.searcher.batches(asked, rows=self._count)

    def ranked(self, asked: Sequence[Asked], texts: Sequence[str]) -> list[list[Translation]]:
        """As many as are wanted of each, the best first; nothing of what was abandoned."""
        wanted = self.wanted
        sought = Sought(wanted.controls, self._count) if wanted.sampling is None else None
        found = [
            [self.searcher.told(one, hypothesis, aligned=wanted.align, sought=sought) for hypothesis in some]
            for one, some in zip(asked, self._hypotheses(asked), strict=True)
        ]
        if wanted.mbr is not None:
            found = [by_likeness(some, wanted.mbr.likeness) for some in found]
        if wanted.rerank is not None:
            found = reranked(texts, found, wanted.rerank, self.searcher.search.length_penalty)
        if self.restyled and wanted.sampling is None:
            found = [told_apart(some) for some in found]
        return [some[: wanted.best] for some in found]

    @property
    def _count(self) -> int:
        """How many to find of each, so that there is something to choose from."""
        wanted = self.wanted
        if wanted.mbr is not None:
            return wanted.mbr.samples
        wider = wanted.rerank is not None or (self.restyled and wanted.alternatives > 0)
        return self.searcher.search.beam if wider and wanted.sampling is None else wanted.best

    def _hypotheses(self, asked: Sequence[Asked]) -> list[list[Hypothesis]]:
        wanted, count = self.wanted, self._count
        if wanted.sampling is None:
            return self.searcher.look(asked, wanted.controls, keep=count, looks=wanted.align)
        return self.searcher.draw(asked, wanted.sampling, seed=wanted.seed, count=count, looks=wanted.align)
