"""Pairs of ids on disk, memory-mapped: a corpus larger than memory costs what is looked at.

A corpus called `train` is seven files of one directory, numbers in the machine's little-endian order:

    train.json             pairs, tokens of each side, the type of an id, and the stretches it was mixed of
    train.source.ids       the ids of all sources end to end, without begin or end
    train.source.offsets   int64: pair i is ids[offsets[i] : offsets[i + 1]]
    train.target.ids, train.target.offsets
    train.lines            int64: the line that each pair came from, counted on from 1 over all input files
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkv.errors import ConfigError, TextError

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]

_DTYPES: dict[str, Any] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_NUMBER = np.dtype("<i8")


class Sentences(NamedTuple):
    """Many sentences of one side as a flat array of ids and the length of each."""

    ids: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sentences: list[list[int]]) -> Sentences:
        return cls(
            np.array([token for sentence in sentences for token in sentence], dtype=np.uint32),
            np.array([len(sentence) for sentence in sentences], dtype=np.int64),
        )


class Stretch(NamedTuple):
    """Pairs of a mixed corpus that are all of one direction, and which ones of its base they are."""

    direction: str
    """From which language into which, such as `en-de`."""
    first: int
    """The first of the base's pairs that these are drawn from, and of how many."""
    of: int
    pairs: int
    """How many are drawn, evenly."""
    turned: bool
    """Whether the base has them the other way round."""
    tags: tuple[int, ...]
    """What stands before each source."""

    def chosen(self) -> Numbers:
        """The numbers of these pairs in the base."""
        number = np.arange(self.of, dtype=np.int64)
        taken = (number + 1) * self.pairs // self.of > number * self.pairs // self.of
        return self.first + number[taken]


@dataclass(frozen=True)
class Corpus:
    """Pairs of ids that stay on disk until they are looked at: `Corpus.open(directory, "train").pair(0)`."""

    source_ids: Ids
    source_offsets: Numbers
    target_ids: Ids
    target_offsets: Numbers
    lines: Numbers
    stretches: tuple[Stretch, ...] = ()
    """What it was mixed of, in order; nothing where it is as it was encoded."""

    @classmethod
    def open(cls, directory: Path, name: str) -> Corpus:
        """The corpus of that name; files that are missing or of the wrong size are named."""
        described = _describe(directory, name)
        pairs, dtype = described["pairs"], _DTYPES[described["dtype"]]
        arrays: dict[str, Any] = {"lines": _map(directory / f"{name}.lines", _NUMBER, pairs)}
        for side in ("source", "target"):
            tokens = described[f"{side}_tokens"]
            offsets = _map(directory / f"{name}.{side}.offsets", _NUMBER, pairs + 1)
            if offsets[0] != 0 or offsets[-1] != tokens:
                raise TextError(f"{directory / name}.{side}.offsets does not fit its ids; prepare the data again")
            arrays[f"{side}_offsets"] = offsets
            arrays[f"{side}_ids"] = _map(directory / f"{name}.{side}.ids", dtype, tokens)
        return cls(**arrays, stretches=described["stretches"])

    @staticmethod
    def stretches_of(directory: Path, name: str) -> tuple[Stretch, ...]:
        """What a corpus is mixed of, as its JSON tells, whether its other files are there or not."""
        stretches: tuple[Stretch, ...] = _describe(directory, name)["stretches"]
        return stretches

    def by_stretch(self, numbers: range) -> list[tuple[range, Stretch | None]]:
        """Numbers of pairs that follow one another, parted by the stretches they are of."""
        if not self.stretches:
            return [(numbers, None)]
        found: list[tuple[range, Stretch | None]] = []
        first = 0
        for stretch in self.stretches:
            inside = range(max(first, numbers.start), min(first + stretch.pairs, numbers.stop))
            found += [(inside, stretch)] if inside else []
            first += stretch.pairs
        return found

    def __len__(self) -> int:
        return len(self.lines)

    def source_lengths(self) -> Numbers:
        return np.diff(self.source_offsets)

    def target_lengths(self) -> Numbers:
        return np.diff(self.target_offsets)

    def pair(self, index: int) -> tuple[list[int], list[int]]:
        """The ids of one pair, source and target, without begin or end."""
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        source = self.source_ids[self.source_offsets[index] : self.source_offsets[index + 1]]
        target = self.target_ids[self.target_offsets[index] : self.target_offsets[index + 1]]
        return source.tolist(), target.tolist()


class CorpusWriter:
    """Writes a corpus as its pairs come; what was not closed in good order has no JSON and cannot be opened."""

    def __init__(self, directory: Path, name: str, *, vocabulary: int) -> None:
        self._directory = directory
        self._name = name
        self._dtype = "uint16" if vocabulary <= 1 << 16 else "uint32"
        self._files: dict[str, IO[bytes]] = {}
        self._tokens = {"source": 0, "target": 0}
        self._pairs = 0
        self._stretches: list[Stretch] = []

    def __enter__(self) -> CorpusWriter:
        for part in ("source.ids", "source.offsets", "target.ids", "target.offsets", "lines"):
            self._files[part] = (self._directory / f"{self._name}.{part}").open("wb")
        for side in self._tokens:
            self._files[f"{side}.offsets"].write(_bytes(np.zeros(1), _NUMBER))
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()
        if kind is None:
            described: dict[str, Any] = {"dtype": self._dtype, **self.counts}
            if self._stretches:
                described["stretches"] = [stretch._asdict() for stretch in self._stretches]
            (self._directory / f"{self._name}.json").write_text(json.dumps(described, indent=2) + "\n")

    def append(self, source: list[int], target: list[int], line: int) -> None:
        """Adds one pair; `extend` is the quicker way to add many."""
        self.extend(Sentences.of([source]), Sentences.of([target]), np.array([line]))

    def extend(self, source: Sentences, target: Sentences, lines: npt.NDArray[np.integer[Any]]) -> None:
        """Adds as many pairs as there are lines."""
        assert len(source.lengths) == len(target.lengths) == len(lines)
        for side, sentences in (("source", source), ("target", target)):
            self._files[f"{side}.ids"].write(_bytes(sentences.ids, _DTYPES[self._dtype]))
            offsets = self._tokens[side] + np.cumsum(sentences.lengths)
            self._files[f"{side}.offsets"].write(_bytes(offsets, _NUMBER))
            self._tokens[side] += len(sentences.ids)
        self._files["lines"].write(_bytes(lines, _NUMBER))
        self._pairs += len(lines)

    def note(self, stretch: Stretch) -> None:
        """Says what the pairs that were added since the last stretch are."""
        self._stretches.append(stretch)

    def __len__(self) -> int:
        return self._pairs

    @property
    def counts(self) -> dict[str, int]:
        """How much is written so far."""
        return {"pairs": self._pairs, **{f"{side}_tokens": tokens for side, tokens in self._tokens.items()}}


def _bytes(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> bytes:
    # Not array.tofile: on a full disk that loses the reason.
    return array.astype(dtype).tobytes()


def _describe(directory: Path, name: str) -> dict[str, Any]:
    path = directory / f"{name}.json"
    try:
        described = json.loads(path.read_text())
        counts = [described[count] for count in ("pairs", "source_tokens", "target_tokens")]
        sound = described["dtype"] in _DTYPES and all(isinstance(count, int) and count >= 0 for count in counts)
        stretches = [Stretch(**{**one, "tags": tuple(one["tags"])}) for one in described.get("stretches", ())]
        described["stretches"] = tuple(stretches)
        sound = sound and (not stretches or sum(stretch.pairs for stretch in stretches) == described["pairs"])
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"{directory} holds no corpus called {name!r}; `qkv prepare` makes one") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TextError(f"{path} is damaged; prepare the data again") from error
    if not sound:
        raise TextError(f"{path} is damaged; prepare the data again")
    return dict(described)


def _map(path: Path, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    expected = count * dtype.itemsize
    try:
        found = path.stat().st_size
    except FileNotFoundError as error:
        raise TextError(f"{path} is missing; prepare the data again") from error
    if found != expected:
        raise TextError(f"{path} is damaged: {found:,} bytes instead of {expected:,}; prepare the data again")
    # An empty file cannot be mapped.
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype)
