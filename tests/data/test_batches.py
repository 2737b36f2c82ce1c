"""Batches of a corpus, against a layout written as plain loops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qkv.data import batches
from qkv.data.batch import PairBatch, one_sentence_a_row
from qkv.data.batches import Batches, Marks
from qkv.data.corpus import Corpus, CorpusWriter
from qkv.data.ramp import NO_RAMP, Ramp
from qkv.errors import ConfigError
from qkv.layers import loss
from tests.packed import Pair, pair_batch

WIDTH, ROWS_A_STEP = 12, 3
MARKS = Marks(padding=0, begin=1, end=2)
words = st.lists(st.integers(3, 99), min_size=1, max_size=WIDTH - 1)


def test_batches_and_the_loss_agree_on_what_is_passed_over() -> None:
    """Shelves do not import one another, so each has the number; torch has it first."""
    assert batches.IGNORED == loss.IGNORED == torch.nn.CrossEntropyLoss().ignore_index


def some_pairs(count: int) -> list[Pair]:
    """Pairs that are all different, of all lengths that fit."""
    generator = torch.Generator().manual_seed(1)

    def sentence() -> list[int]:
        length = int(torch.randint(1, WIDTH, (), generator=generator))
        return torch.randint(3, 100, (length,), generator=generator).tolist()

    return [Pair([3 + number % 97, *sentence()[1:]], sentence()) for number in range(count)]


def corpus_of(directory: Path, pairs: list[Pair]) -> Corpus:
    with CorpusWriter(directory, "train", vocabulary=100) as writer:
        for number, pair in enumerate(pairs):
            writer.append(pair.source, pair.target, number + 1)
    return Corpus.open(directory, "train")


def batches_of(directory: Path, pairs: list[Pair], *, rows_a_step: int = ROWS_A_STEP, seed: int = 1) -> Batches:
    return Batches(corpus_of(directory, pairs), width=WIDTH, rows_a_step=rows_a_step, marks=MARKS, seed=seed)


def same(ours: PairBatch, theirs: PairBatch) -> None:
    for side, expected in ((ours.source, theirs.source), (ours.target, theirs.target)):
        assert side.segments_RW is not None and expected.segments_RW is not None
        assert torch.equal(side.ids_RW, expected.ids_RW)
        assert torch.equal(side.positions_RW, expected.positions_RW)
        assert torch.equal(side.segments_RW, expected.segments_RW)
    assert torch.equal(ours.label_RW, theirs.label_RW)
    assert (ours.source_tokens, ours.target_tokens) == (theirs.source_tokens, theirs.target_tokens)


def pairs_in(batch: PairBatch) -> list[list[Pair]]:
    """What a batch says, read back from its tensors row by row."""
    assert batch.source.segments_RW is not None and batch.target.segments_RW is not None
    rows = []
    for r in range(len(batch.label_RW)):
        source, target = batch.source.segments_RW[r], batch.target.segments_RW[r]
        assert source.max() == target.max()
        rows.append(
            [
                Pair(
                    batch.source.ids_RW[r, source == number].tolist()[:-1],
                    batch.target.ids_RW[r, target == number].tolist()[1:],
                )
                for number in range(1, int(source.max()) + 1)
            ]
        )
    return rows


@given(st.lists(st.builds(Pair, words, words), min_size=1, max_size=12), st.integers(0, 5))
def test_a_batch_is_its_rows_laid_out_token_by_token(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair], step: int
) -> None:
    batches = batches_of(tmp_path_factory.mktemp("corpus"), pairs)
    rows = batches.rows.of(batches.rows_of_step(step))
    expected = [
        [pairs[pair] for pair in rows.pairs[start:stop]]
        for start, stop in zip(rows.starts[:-1], rows.starts[1:], strict=True)
    ]
    same(
        batches.of_step(step),
        pair_batch(
            expected,
            source_width=WIDTH,
            target_width=WIDTH,
            padding=MARKS.padding,
            begin=MARKS.begin,
            end=MARKS.end,
        ),
    )


def test_labels_are_the_targets_tokens_one_place_on(tmp_path: Path) -> None:
    batch = batches_of(tmp_path, some_pairs(40)).of_step(0)
    segments, ids, label = batch.target.segments_RW, batch.target.ids_RW, batch.label_RW
    assert segments is not None
    goes_on = segments[:, 1:] == segments[:, :-1]
    real = segments[:, :-1] != 0
    assert torch.equal(label[:, :-1][goes_on & real], ids[:, 1:][goes_on & real])
    assert (label[:, :-1][~goes_on & real] == MARKS.end).all()
    assert (label[segments == 0] == -100).all() and (ids[segments == 0] == MARKS.padding).all()


def test_an_epoch_has_every_pair_exactly_once(tmp_path: Path) -> None:
    pairs = some_pairs(60)
    batches = batches_of(tmp_path, pairs, rows_a_step=1)
    for epoch in range(3):
        steps = range(epoch * len(batches.rows), (epoch + 1) * len(batches.rows))
        seen = [pair for step in steps for row in pairs_in(batches.of_step(step)) for pair in row]
        assert sorted(seen) == sorted(pairs)


def test_epochs_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    """Every step has as many rows as any other, also the one in which an epoch ends and the next begins."""
    batches = batches_of(tmp_path, some_pairs(63))
    rows = len(batches.rows)
    assert rows % ROWS_A_STEP
    taken = [row for step in range(rows) for row in batches.rows_of_step(step).tolist()]
    assert len(taken) == rows * ROWS_A_STEP
    epochs = [taken[start : start + rows] for start in range(0, len(taken), rows)]
    assert all(sorted(epoch) == [*range(rows)] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == ROWS_A_STEP


def test_a_step_is_the_same_whatever_was_asked_before(tmp_path: Path) -> None:
    pairs = some_pairs(60)
    forwards, backwards = (batches_of(tmp_path, pairs) for _ in range(2))
    steps = range(20)
    first = {step: forwards.of_step(step) for step in steps}
    for step in reversed(steps):
        same(backwards.of_step(step), first[step])
    same(batches_of(tmp_path, pairs).of_step(17), first[17])


def test_the_seed_changes_the_order_and_nothing_else(tmp_path: Path) -> None:
    pairs = some_pairs(60)
    first, second = (batches_of(tmp_path, pairs, seed=seed) for seed in (1, 2))
    assert first.rows.pairs.tolist() == second.rows.pairs.tolist()
    assert first.rows_of_step(0).tolist() != second.rows_of_step(0).tolist()


def test_a_corpus_smaller_than_one_step_is_seen_several_times_in_it(tmp_path: Path) -> None:
    pairs = [Pair([3] * 11, [4] * 11), Pair([5] * 10, [6] * 9)]
    batches = batches_of(tmp_path, pairs, rows_a_step=5)
    batch = batches.of_step(0)
    assert batch.label_RW.shape == (5, WIDTH)
    counts = Counter(tuple(map(tuple, pair)) for row in pairs_in(batch) for pair in row)
    assert sorted(counts.values()) == [2, 3]
    assert batches.epoch_at(1) == 2.5


def test_fill_is_the_share_of_target_positions_that_hold_a_token(tmp_path: Path) -> None:
    batches = batches_of(tmp_path, some_pairs(60), rows_a_step=1)
    real = sum(int((batches.of_step(step).label_RW != -100).sum()) for step in range(len(batches.rows)))
    assert batches.fill == pytest.approx(real / (len(batches.rows) * WIDTH))


def test_the_lines_of_a_step_are_those_its_pairs_came_from(tmp_path: Path) -> None:
    pairs = some_pairs(60)
    batches = batches_of(tmp_path, pairs)
    for step in (0, 7):
        seen = [pair for row in pairs_in(batches.of_step(step)) for pair in row]
        assert [pairs[line - 1] for line in batches.lines_of_step(step)] == seen


def test_one_sentence_a_row_pads_at_the_end() -> None:
    packed = one_sentence_a_row([[5, 6, 7], [8]], padding=0)
    assert packed.ids_RW.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert packed.positions_RW.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert packed.segments_RW is not None
    assert packed.segments_RW.tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_of_a_batch_are_its_rows(tmp_path: Path, parts: int) -> None:
    batch = batches_of(tmp_path, some_pairs(40), rows_a_step=5).of_step(0)
    split = [*batch.split(parts)]
    assert len(split) == parts
    assert [row for part in split for row in pairs_in(part)] == pairs_in(batch)
    assert {(part.source_tokens, part.target_tokens) for part in split} == {(batch.source_tokens, batch.target_tokens)}


@pytest.mark.parametrize("shares", [1, 2, 3, 5])
def test_the_shares_of_a_step_are_its_rows_in_order(tmp_path: Path, shares: int) -> None:
    batches = batches_of(tmp_path, some_pairs(60), rows_a_step=5)
    for step in range(12):
        whole = batches.of_step(step)
        parts = [batches.of_step(step, share=share, shares=shares) for share in range(shares)]
        assert all(len(part.label_RW) in (5 // shares, -(-5 // shares)) for part in parts)
        for one, some in zip(whole.tensors(), zip(*(part.tensors() for part in parts), strict=True), strict=True):
            assert torch.equal(one, torch.cat(some))
        # Each share divides its loss by the tokens of all.
        assert {(part.source_tokens, part.target_tokens) for part in parts} == {
            (whole.source_tokens, whole.target_tokens)
        }
    assert whole.target_tokens == int((whole.label_RW != -100).sum())


def test_pairs_that_do_not_fit_a_row_are_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    pairs = some_pairs(60)
    corpus = corpus_of(tmp_path, pairs)
    narrow = Batches(corpus, width=8, rows_a_step=1, marks=MARKS, seed=1, leave_out_longer=True)
    fitting = [pair for pair in pairs if max(len(pair.source), len(pair.target)) < 8]
    assert 0 < len(fitting) < len(pairs)
    steps = [narrow.of_step(step) for step in range(len(narrow.rows))]
    assert sorted(pair for step in steps for row in pairs_in(step) for pair in row) == sorted(fitting)
    assert narrow.left_out == len(pairs) - len(fitting)
    assert [pairs[line - 1] for line in narrow.lines_of_step(0)] == pairs_in(steps[0])[0]
    real = sum(int((step.label_RW != -100).sum()) for step in steps)
    assert narrow.fill == pytest.approx(real / (len(narrow.rows) * 8))
    with pytest.raises(ConfigError, match=r"no pair of the corpus fits rows of 1 positions; set training\.row_width"):
        Batches(corpus, width=1, rows_a_step=1, marks=MARKS, seed=1, leave_out_longer=True)


def test_batches_that_grow_take_the_rows_in_the_same_order(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, some_pairs(63))
    steady, growing = (
        Batches(corpus, width=WIDTH, rows_a_step=4, marks=MARKS, seed=1, ramp=ramp) for ramp in (NO_RAMP, Ramp(3, 6))
    )
    sizes = [1, 1, 1, 2, 2, 2] + [4] * 40
    assert [len(growing.of_step(step).label_RW) for step in range(len(sizes))] == sizes
    taken = [row for step in range(len(sizes)) for row in growing.rows_of_step(step)]
    assert taken == [row for step in range(len(sizes)) for row in steady.rows_of_step(step)][: len(taken)]
    assert len(taken) > 2 * len(growing.rows)
    assert growing.epoch_at(8) == 17 / len(growing.rows)
    batch, shares = growing.of_step(4), [growing.of_step(4, share=share, shares=2) for share in range(2)]
    assert torch.equal(batch.label_RW, torch.cat([share.label_RW for share in shares]))
    assert {share.target_tokens for share in shares} == {batch.target_tokens}
