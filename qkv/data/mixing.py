"""One corpus made of another: its pairs in several directions, each source behind a tag, some more often than others.

Pairs of two languages teach two directions, and are encoded once. A stretch says which pairs, which way round and
behind which tags; a corpus that was made so keeps its stretches, and what it was made of can be had back from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.corpus import Corpus, CorpusWriter, Sentences, Stretch

_AT_ONCE = 1 << 16


def write_mixed(base: Corpus, stretches: Sequence[Stretch], writer: CorpusWriter) -> None:
    """Writes the pairs of each stretch in turn."""
    for stretch in stretches:
        for pairs in _chunks(stretch.chosen()):
            source, target = (_taken(base, side, pairs) for side in ("source", "target"))
            if stretch.turned:
                source, target = target, source
            writer.extend(_tagged(source, stretch.tags), target, base.lines[pairs])
        writer.note(stretch)


def write_base(mixed: Corpus, writer: CorpusWriter) -> None:
    """Writes what a mixed corpus was made of: each pair once, the way it was, without tags."""
    place = 0
    for stretch in mixed.stretches:
        # The first time that pairs appear, all of them do.
        if stretch.first == len(writer):
            for pairs in _chunks(np.arange(place, place + stretch.pairs)):
                source, target = (_taken(mixed, side, pairs) for side in ("source", "target"))
                source = _untagged(source, len(stretch.tags))
                if stretch.turned:
                    source, target = target, source
                writer.extend(source, target, mixed.lines[pairs])
        place += stretch.pairs


def _chunks(pairs: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    return (pairs[first : first + _AT_ONCE] for first in range(0, len(pairs), _AT_ONCE))


def _taken(corpus: Corpus, side: str, pairs: npt.NDArray[np.int64]) -> Sentences:
    ids = corpus.source_ids if side == "source" else corpus.target_ids
    offsets = corpus.source_offsets if side == "source" else corpus.target_offsets
    lengths = offsets[pairs + 1] - offsets[pairs]
    place = _places(lengths) + np.repeat(offsets[pairs], lengths)
    return Sentences(np.asarray(ids[place]), lengths)


def _tagged(sentences: Sentences, tags: Sequence[int]) -> Sentences:
    lengths = sentences.lengths + len(tags)
    place = _places(lengths)
    ids = np.empty(len(place), dtype=sentences.ids.dtype)
    ids[place >= len(tags)] = sentences.ids
    for number, tag in enumerate(tags):
        ids[place == number] = tag
    return Sentences(ids, lengths)


def _untagged(sentences: Sentences, count: int) -> Sentences:
    return Sentences(sentences.ids[_places(sentences.lengths) >= count], sentences.lengths - count)


def _places(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """0, 1, 2, … for each sentence."""
    end = np.cumsum(lengths, dtype=np.int64)
    place: npt.NDArray[np.int64] = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(end - lengths, lengths)
    return place
