"""What is learned of which subwords translate which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qkv.data.corpus import Corpus, CorpusWriter
from qkv.engines.shortlist import Shortlist
from qkv.errors import CheckpointError
from qkv.export.shortlist import learn_shortlist

VOCABULARY, END = 60, 2


def corpus(folder: Path) -> Corpus:
    """Every word of 10 to 29 is translated by the one thirty above it, in any order, and a 5 stands in all targets."""
    random = np.random.default_rng(1)
    with CorpusWriter(folder, "train", vocabulary=VOCABULARY) as writer:
        for line in range(400):
            source = random.integers(10, 30, 6)
            writer.append(source.tolist(), [5, *random.permutation(source + 30).tolist()], line)
    return Corpus.open(folder, "train")


def test_the_likeliest_translation_comes_first(tmp_path: Path) -> None:
    found = learn_shortlist(corpus(tmp_path), VOCABULARY, end=END, likely=3, frequent=1)
    assert found.likely[0, 10:30, 0].tolist() == [*range(40, 60)]
    assert found.frequent.tolist() == [[END, 5]]
    # Of what was never seen nothing is known.
    assert found.likely[0, 50].tolist() == [END] * 3


def test_what_may_always_come_takes_no_places(tmp_path: Path) -> None:
    """A 5 stands beside every word, so among the likely it would be in every row."""
    found = learn_shortlist(corpus(tmp_path), VOCABULARY, end=END, likely=20, frequent=1)
    assert not {5, END} & {*found.likely[0, 10].tolist()}
    assert {*found.likely[0, 10].tolist()} == {*range(40, 60)}


def test_each_language_that_is_asked_for_has_a_table_of_its_own(tmp_path: Path) -> None:
    """Words of 10 to 19 are translated by those ten above them behind tag 6, and by those twenty above behind tag 7."""
    random = np.random.default_rng(1)
    with CorpusWriter(tmp_path, "train", vocabulary=VOCABULARY) as writer:
        for number, tag in enumerate((6, 7)):
            for line in range(300):
                source = random.integers(10, 20, 4)
                writer.append([tag, *source.tolist()], (source + 10 * (number + 1)).tolist(), line)
    found = learn_shortlist(Corpus.open(tmp_path, "train"), VOCABULARY, end=END, tags=(6, 7), likely=2, frequent=0)
    assert found.tags == (6, 7)
    assert found.likely[:, 10:20, 0].tolist() == [[*range(20, 30)], [*range(30, 40)]]
    assert found.likely.dtype == np.uint8
    found.save(tmp_path)
    again = Shortlist.load(tmp_path, VOCABULARY)
    for tag, others in ((6, range(30, 40)), (7, range(20, 30))):
        asked = [tag, 10, 11, END]
        table = again.table(asked)
        always, (own,) = again.always(table).tolist(), again.own(table, [asked], wanted=[[9]]).tolist()
        assert {9, 10, 11, END, tag} <= {*always, *own}
        assert not {*always, *own} & {*others}
        # Nothing would be counted twice.
        assert len({*always, *own}) == len(always) + len(own)


def test_what_another_has_for_the_same_language_is_added(tmp_path: Path) -> None:
    found = learn_shortlist(corpus(tmp_path), VOCABULARY, end=END, tags=(6,), likely=20, frequent=1)
    likely = np.full((2, VOCABULARY, 1), END, np.uint32)
    likely[1, 10:30, 0] = range(20, 40)
    known = Shortlist(likely, np.array([[END, 50, 51], [END, 52, 53]]), (7, 6))
    joined = found.with_that_of(known)
    # Nothing stands behind tag 6 in this corpus.
    assert (joined.tags, joined.likely.dtype, joined.likely.shape) == ((6,), found.likely.dtype, (1, VOCABULARY, 2))
    assert {*joined.always(0).tolist()} == {END, 52, 53}
    assert {20, 39} <= {*joined.own(0, [[6, 10, 29]], wanted=[]).reshape(-1).tolist()}
    joined.save(tmp_path)
    again = Shortlist.of_arrays(Shortlist.load(tmp_path, VOCABULARY).arrays(), VOCABULARY)
    assert (again.likely == joined.likely).all() and (again.frequent == joined.frequent).all()


def test_tables_may_have_more_or_less_of_each(tmp_path: Path) -> None:
    found = learn_shortlist(corpus(tmp_path), VOCABULARY, end=END, likely=3, frequent=1)
    known = Shortlist(np.full((1, VOCABULARY, 1), 7, np.uint8), np.array([[END, 8, 9]]))
    joined = found.with_that_of(known)
    assert {*joined.always(0).tolist()} == {END, 5, 8, 9}
    assert {*found.likely[0, 10].tolist(), 7} == {*joined.likely[0, 10].tolist()}
    # A language that is not there adds nothing.
    tagged = Shortlist(found.likely, found.frequent, (6,))
    assert tagged.with_that_of(Shortlist(known.likely, known.frequent, (7,))).always(0).tolist() == [END, 5]


@pytest.mark.parametrize(
    "change",
    [
        {"likely": np.full((1, VOCABULARY, 1), VOCABULARY, np.int32)},
        {"likely": np.zeros((1, VOCABULARY - 1, 1), np.int32)},
        {"likely": np.zeros(VOCABULARY, np.int32)},
        {"frequent": np.array([[-1]])},
        {"frequent": np.array([[1], [2]])},
        {"frequent": np.array([[0.5]])},
        {"tags": np.array([5, 6])},
    ],
)
def test_arrays_that_are_none_are_damaged(change: dict[str, NDArray[Any]]) -> None:
    sound = Shortlist(np.zeros((1, VOCABULARY, 1), np.int32), np.array([[1]])).arrays()
    assert Shortlist.of_arrays(sound, VOCABULARY).tags == ()
    with pytest.raises(CheckpointError, match="a shortlist is damaged"):
        Shortlist.of_arrays({**sound, **change}, VOCABULARY)
    with pytest.raises(CheckpointError, match="a shortlist is damaged"):
        Shortlist.of_arrays({"likely": sound["likely"]}, VOCABULARY)
