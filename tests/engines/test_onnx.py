"""The engine over an exported model, against the model itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qkv.engines.looks import Looks
from qkv.engines.onnx import OnnxEngine
from qkv.engines.plain import PlainEngine
from qkv.engines.sessions import Sessions
from qkv.engines.shortlist import Shortlist
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.beam import beam_search
from qkv.search.engine import Engine, Floats
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from tests.engines.exporting import exported
from tests.models.families import BEGIN, END, FAMILIES, PADDING, VOCABULARY, small_model

SOURCES = [[5, 6, 7, END], [8, END], [9, 5, 6, 30, 8, 11, END], [4, 21, END], [33, 9, 10, END]]
HEADS = [(0, 1), (1, 0)]

SHORT = Shortlist(
    np.random.default_rng(4).integers(END, VOCABULARY, (1, VOCABULARY, 3)).astype(np.uint32), np.array([[END, 5, 9]])
)


@cache
def model(family: str) -> EncoderDecoder:
    return small_model(family)


def walked(engine: Engine[Any], *, looks: bool = False) -> list[tuple[Floats, Floats]]:
    """The log-probabilities and looks of a walk in which beams split, are given up and sentences leave."""
    random = np.random.default_rng(6)
    state = engine.start(SOURCES, looks=looks)
    token_R, sentences, told = np.full(len(SOURCES), BEGIN), len(SOURCES), []
    for step in range(14):
        continuations, state = engine.step(token_R, state)
        looked_RK = continuations.looked_RK
        told.append((continuations.everything(), np.zeros(0, np.float32) if looked_RK is None else looked_RK))
        beam = len(token_R) // sentences
        left = np.arange(sentences) if step not in (5, 9) else np.delete(np.arange(sentences), 1)
        parents_R = (left[:, None] * beam + random.integers(0, beam, (len(left), 3 if step < 11 else 2))).ravel()
        state = state.select(parents_R, None if len(left) == sentences else left)
        token_R, sentences = random.integers(3, VOCABULARY, len(parents_R)), len(left)
    return told


def searched(engine: Engine[Any], sources: list[list[int]], width: int) -> list[list[Hypothesis]]:
    limits = Limits(begin=BEGIN, end=END, longest=[len(source) + 9 for source in sources], forbidden=(PADDING, BEGIN))
    penalty = paper_penalty(0.6)
    return beam_search(engine, engine.start(sources), limits, width=width, penalty=penalty, keep=width)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_what_the_model_gives(family: str, tmp_path: Path) -> None:
    plain = PlainEngine(model(family), PADDING, looks=Looks(HEADS))
    ours = exported(tmp_path, model(family), "float32", heads=HEADS)
    for (gain_RV, looked_RK), (expected_RV, expected_RK) in zip(
        walked(ours, looks=True), walked(plain, looks=True), strict=True
    ):
        np.testing.assert_allclose(gain_RV, expected_RV, atol=1e-4)
        np.testing.assert_allclose(looked_RK, expected_RK, atol=1e-5)
    for width in (1, 4):
        found = searched(ours, SOURCES, width)
        expected = searched(plain, SOURCES, width)
        assert [[one.ids for one in some] for some in found] == [[one.ids for one in some] for some in expected]
        scores = [[one.score for one in some] for some in found]
        np.testing.assert_allclose(scores, [[one.score for one in some] for some in expected], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_eight_bits_come_close(family: str, tmp_path: Path) -> None:
    plain = PlainEngine(model(family), PADDING)
    ours = exported(tmp_path, model(family), "int8")
    for (gain_RV, _), (expected_RV, _) in zip(walked(ours), walked(plain), strict=True):
        np.testing.assert_allclose(gain_RV, expected_RV, atol=0.5)
        assert np.abs(gain_RV - expected_RV).mean() < 0.05


def test_rows_of_zeros_are_numbers_in_eight_bits_too(tmp_path: Path) -> None:
    silent = small_model("paper")
    with torch.no_grad():
        # All that is said to the second layer of the network is below zero.
        silent.get_parameter("decoder.blocks.0.feed_forward.widen.bias").fill_(-100.0)
    ours = exported(tmp_path, silent, "int8")
    assert np.isfinite(walked(ours)[0][0]).all()


@pytest.mark.parametrize("shortlist", [None, SHORT])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_sentence_is_translated_alike_alone_and_beside_others(
    precision: str, shortlist: Shortlist | None, tmp_path: Path
) -> None:
    ours = exported(tmp_path, model("modern"), precision, shortlist=shortlist)
    together = searched(ours, SOURCES, 3)
    for source, expected in zip(SOURCES, together, strict=True):
        (alone,) = searched(ours, [source], 3)
        assert [one.ids for one in alone] == [one.ids for one in expected]
        np.testing.assert_allclose([one.score for one in alone], [one.score for one in expected], atol=1e-5)


def test_the_way_that_is_exact_on_every_processor_gives_the_same(tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8", shortlist=SHORT)
    quick, careful = (OnnxEngine(tmp_path, careful=careful) for careful in (None, True))
    for (gain_RV, _), (expected_RV, _) in zip(walked(careful), walked(quick), strict=True):
        np.testing.assert_array_equal(gain_RV, expected_RV)


def test_a_processor_that_needs_no_care_is_known_by_what_it_does(tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8")
    row, numbers = np.full((1, 512), 255, np.uint8), np.full((512, 48), 127, np.int8)
    session = Sessions(tmp_path, careful=False)["sum.onnx"]
    (total,) = session.run(None, {"row_1D": row, "numbers_DV": numbers})
    assert Sessions(tmp_path).careful == bool((total != 512 * 255 * 127).any())


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> OnnxEngine:
    return exported(tmp_path_factory.mktemp("short"), model("paper"), "float32", shortlist=SHORT)


def test_a_shortlist_is_the_sentences_own_and_its_probabilities_sum_to_one(short: OnnxEngine) -> None:
    plain = PlainEngine(model("paper"), PADDING)
    # What the second one wants is its alone.
    wanted = [[], [36], [], [], []]
    continuations, _ = short.step(np.full(5, BEGIN), short.start(SOURCES, wanted=wanted))
    whole, _ = plain.step(np.full(5, BEGIN), plain.start(SOURCES))
    gain_RV, expected_RV = continuations.everything(), whole.everything()
    for source, own, gain_V, expected_V in zip(SOURCES, wanted, gain_RV, expected_RV, strict=True):
        allowed = sorted({5, 9, *own, *source, *SHORT.likely[0, source].ravel().tolist()})
        assert np.flatnonzero(gain_V > -np.inf).tolist() == allowed
        renormalised = expected_V[allowed] - np.log(np.exp(expected_V[allowed]).sum())
        np.testing.assert_allclose(gain_V[allowed], renormalised, atol=1e-4)


def test_sentences_for_several_languages_stand_side_by_side(tmp_path: Path) -> None:
    """Each has its own language's list, wherever in the batch it stands and whoever leaves."""
    random = np.random.default_rng(5)
    # The second has fewer frequent ones than the first, and is filled up by its end: that is not counted twice.
    tagged = Shortlist(
        random.integers(END, VOCABULARY, (2, VOCABULARY, 3)).astype(np.uint32),
        np.array([[END, 5, 9, 20], [END, 11, END, END]]),
        tags=(4, 6),
    )
    ours = exported(tmp_path, model("modern"), "float32", shortlist=tagged)
    sources = [[tag, *source] for tag, source in zip((4, 6, 6, 4, 6), SOURCES, strict=True)]
    continuations, state = ours.step(np.full(5, BEGIN), ours.start(sources, looks=True))
    every_RV = continuations.everything()
    np.testing.assert_allclose(np.exp(every_RV).sum(axis=1), 1, atol=1e-5)
    for table, row in zip((0, 1, 1, 0, 1), every_RV, strict=True):
        assert np.isfinite(row[tagged.frequent[table]]).all()
    together = searched(ours, sources, 3)
    for source, expected in zip(sources, together, strict=True):
        (alone,) = searched(ours, [source], 3)
        assert [one.ids for one in alone] == [one.ids for one in expected]
    # The second of the first stretch of two is left, and all others but one.
    fewer = state.select(np.array([2, 4]), np.array([2, 4]))
    after, _ = ours.step(np.array([7, 8]), fewer)
    assert after.looked_RK is not None
    assert after.everything().shape == (2, VOCABULARY)


def test_a_sentence_that_needs_nothing_besides_has_what_always_may_come(tmp_path: Path) -> None:
    always = np.arange(END, 12)
    only = Shortlist(np.full((1, VOCABULARY, 2), END, np.uint32), always[None])
    ours = exported(tmp_path, model("paper"), "int8", shortlist=only)
    continuations, _ = ours.step(np.full(1, BEGIN), ours.start([[5, 6, END]]))
    (row_V,) = continuations.everything()
    assert np.flatnonzero(row_V > -np.inf).tolist() == always.tolist()
    gain_RC, token_RC = continuations.best(VOCABULARY)
    assert token_RC.max() < VOCABULARY
    assert np.isfinite(gain_RC).sum() == len(always)


def test_without_a_shortlist_the_whole_vocabulary_is_there(tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "float32", shortlist=SHORT)
    engine = OnnxEngine(tmp_path, shortlist=False)
    continuations, _ = engine.step(np.full(5, BEGIN), engine.start(SOURCES))
    assert np.isfinite(continuations.everything()).all()


@pytest.mark.parametrize("shortened", [False, True])
def test_the_best_are_the_same_by_whichever_way_they_are_asked_for(
    short: OnnxEngine, tmp_path: Path, shortened: bool
) -> None:
    engine = short if shortened else exported(tmp_path, model("paper"), "float32")

    def fresh() -> Any:
        return engine.step(np.full(5, BEGIN), engine.start(SOURCES, wanted=[range(3, 20)] * len(SOURCES)))[0]

    every_RV = fresh().everything()
    order_RV = np.argsort(-every_RV, axis=1, kind="stable")
    for forbidden in (0, 1, 3, 9):
        continuations, allowed_RV = fresh(), every_RV.copy()
        rows, tokens = np.arange(5)[:, None], order_RV[:, :forbidden]
        continuations.forbid(rows, tokens)
        allowed_RV[rows, tokens] = -np.inf
        expected_RC = np.argsort(-allowed_RV, axis=1, kind="stable")[:, :6]
        gain_RC, token_RC = continuations.best(6)
        assert token_RC.tolist() == expected_RC.tolist()
        np.testing.assert_array_equal(gain_RC, np.take_along_axis(allowed_RV, expected_RC, axis=1))
        np.testing.assert_array_equal(continuations.everything(), allowed_RV)
        column_V = np.arange(VOCABULARY)
        np.testing.assert_array_equal(continuations.of(np.full(VOCABULARY, 3), column_V), allowed_RV[3])
    assert fresh().best(10_000)[1].shape[1] <= VOCABULARY


def test_names_of_arrays_tell_the_truth(short: OnnxEngine, checked_shapes: None) -> None:  # noqa: ARG001
    assert searched(short, SOURCES, 2)
