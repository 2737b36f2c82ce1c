"""The corpus on disk: what was written is read, and what was damaged is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.data.corpus import Corpus, CorpusWriter, Sentences
from qkv.errors import ConfigError, TextError

PAIRS = [([5, 6, 7], [8]), ([], [9, 10]), ([11], [])]


def write(directory: Path, pairs: list[tuple[list[int], list[int]]], vocabulary: int = 1000) -> None:
    with CorpusWriter(directory, "train", vocabulary=vocabulary) as writer:
        for number, (source, target) in enumerate(pairs):
            writer.append(source, target, 10 * number + 1)


def test_pairs_are_read_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path, PAIRS)
    corpus = Corpus.open(tmp_path, "train")
    assert len(corpus) == 3
    assert [corpus.pair(index) for index in range(3)] == PAIRS
    assert corpus.source_lengths().tolist() == [3, 0, 1]
    assert corpus.target_lengths().tolist() == [1, 2, 0]
    assert corpus.source_offsets.tolist() == [0, 3, 3, 4]
    assert corpus.target_ids.tolist() == [8, 9, 10]
    assert corpus.lines.tolist() == [1, 11, 21]
    with pytest.raises(IndexError):
        corpus.pair(3)
    with pytest.raises(IndexError):
        corpus.pair(-1)


@pytest.mark.parametrize(("vocabulary", "dtype"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path: Path, vocabulary: int, dtype: type) -> None:
    write(tmp_path, [([vocabulary - 1], [0])], vocabulary)
    corpus = Corpus.open(tmp_path, "train")
    assert corpus.source_ids.dtype == dtype
    assert corpus.pair(0) == ([vocabulary - 1], [0])


@given(st.lists(st.lists(st.tuples(*[st.lists(st.integers(0, 999), max_size=4)] * 2), max_size=4), max_size=4))
def test_many_at_once_equal_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[tuple[list[int], list[int]]]]
) -> None:
    directory = tmp_path_factory.mktemp("corpus")
    with CorpusWriter(directory, "train", vocabulary=1000) as writer:
        for chunk in chunks:
            sides = [Sentences.of([pair[side] for pair in chunk]) for side in (0, 1)]
            writer.extend(sides[0], sides[1], np.arange(len(chunk)))
    corpus = Corpus.open(directory, "train")
    assert [corpus.pair(index) for index in range(len(corpus))] == [pair for chunk in chunks for pair in chunk]


def test_the_files_stay_on_disk(tmp_path: Path) -> None:
    write(tmp_path, PAIRS)
    corpus = Corpus.open(tmp_path, "train")
    assert isinstance(corpus.source_ids, np.memmap)
    assert not corpus.source_ids.flags.writeable


PARTS = ["source.ids", "source.offsets", "target.ids", "target.offsets", "lines"]


@pytest.mark.parametrize("part", PARTS)
def test_a_truncated_or_missing_file_is_named(tmp_path: Path, part: str) -> None:
    write(tmp_path, PAIRS)
    path = tmp_path / f"train.{part}"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TextError, match=rf"train\.{part} is damaged: \d+ bytes instead of \d+"):
        Corpus.open(tmp_path, "train")
    path.unlink()
    with pytest.raises(TextError, match=rf"train\.{part} is missing"):
        Corpus.open(tmp_path, "train")


@pytest.mark.parametrize("part", PARTS)
def test_a_file_with_something_after_its_end_is_named(tmp_path: Path, part: str) -> None:
    write(tmp_path, PAIRS)
    with (tmp_path / f"train.{part}").open("ab") as file:
        file.write(bytes(8))
    with pytest.raises(TextError, match=rf"train\.{part} is damaged: \d+ bytes instead of \d+"):
        Corpus.open(tmp_path, "train")


def test_offsets_that_do_not_fit_are_named(tmp_path: Path) -> None:
    write(tmp_path, PAIRS)
    np.array([0, 3, 3, 5]).tofile(tmp_path / "train.source.offsets")
    with pytest.raises(TextError, match=r"source\.offsets does not fit"):
        Corpus.open(tmp_path, "train")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"dtype": "float", "pairs": 1, "source_tokens": 1, "target_tokens": 1}']
)
def test_a_damaged_description_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "train.json").write_text(content)
    with pytest.raises(TextError, match=r"train\.json is damaged"):
        Corpus.open(tmp_path, "train")


def test_what_was_not_finished_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(KeyError), CorpusWriter(tmp_path, "train", vocabulary=9) as writer:
        writer.append([1], [2], 1)
        raise KeyError
    with pytest.raises(ConfigError, match="holds no corpus called 'train'"):
        Corpus.open(tmp_path, "train")
