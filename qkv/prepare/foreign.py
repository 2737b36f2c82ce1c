"""Lines in the wrong language: what was never translated, or was translated into something else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qkv.prepare.clean import CleanCorpus
from qkv.prepare.mix import Mix
from qkv.prepare.mixing import rows_of
from qkv.prepare.workers import Workers
from qkv.progress import Progress
from qkv.text.telling import Telling

_LEARNED_FROM = 200_000
"""Pairs that languages are learned from, drawn evenly."""
_NAMELESS = ("source", "target")


def mark_foreign(corpus: CleanCorpus, mix: Mix, workers: Workers) -> None:
    """Decides that pairs are of the wrong language of which a side is likelier in another language of the mix."""
    languages = [tuple(row.pair or _NAMELESS) for row in mix.rows]
    telling = _learned(corpus, mix, languages)
    first = 0
    with Progress("telling languages", total=len(corpus), unit="pairs") as progress:
        for foreign in workers.map(partial(_foreign, telling=telling), _tasks(corpus, mix, languages)):
            corpus.mark(first + np.flatnonzero(foreign), "wrong language")
            first += len(foreign)
            progress.advance(len(foreign))


class _Task(NamedTuple):
    text: bytes
    languages: list[tuple[str, ...]]


def _tasks(corpus: CleanCorpus, mix: Mix, languages: list[tuple[str, ...]]) -> Iterator[_Task]:
    for some in corpus.texts():
        yield _Task(some.text, [languages[row] for row in rows_of(some.lines, corpus, mix)])


def _learned(corpus: CleanCorpus, mix: Mix, languages: list[tuple[str, ...]]) -> Telling:
    every = max(1, len(corpus) // _LEARNED_FROM)
    texts: dict[str, list[str]] = {language: [] for pair in languages for language in pair}
    for text, pairs in _tasks(corpus, mix, languages):
        for line, pair in [*zip(text.decode().split("\n"), pairs, strict=False)][::every]:
            for language, side in zip(pair, line.split("\t"), strict=True):
                texts[language].append(side)
    return Telling.learn(texts)


def _foreign(task: _Task, *, telling: Telling) -> npt.NDArray[np.bool_]:
    return np.array(
        [
            any(telling.is_foreign(side, language) for language, side in zip(pair, line.split("\t"), strict=True))
            for line, pair in zip(task.text.decode().split("\n"), task.languages, strict=False)
        ],
        dtype=bool,
    )
