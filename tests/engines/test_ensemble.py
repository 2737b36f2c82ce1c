"""Several models as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qkv.engines.ensemble import Ensemble
from qkv.engines.plain import PlainEngine
from qkv.search.beam import beam_search
from qkv.search.engine import Engine, Floats
from qkv.search.hypothesis import Limits, paper_penalty
from tests.models.families import BEGIN as FAMILY_BEGIN
from tests.models.families import END as FAMILY_END
from tests.models.families import PADDING, small_model
from tests.search.made_up import BEGIN, END, MadeUp

SOURCES = [[5, 6, 7, FAMILY_END], [8, FAMILY_END], [9, 5, 6, 7, 8, FAMILY_END]]


class Mean(MadeUp):
    """The mean of two made-up models, computed by hand."""

    def __init__(self, vocabulary: int, models: list[MadeUp]) -> None:
        super().__init__(vocabulary)
        self._models = models

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
        probabilities = [np.exp(model.gains(sentence, prefix).astype(np.float64)) for model in self._models]
        return np.log(sum(probabilities) / len(probabilities)).astype(np.float32)


def test_an_ensemble_of_one_is_itself() -> None:
    engine = PlainEngine(small_model("paper"), PADDING)
    alone, _ = engine.step(np.array([FAMILY_BEGIN] * 3), engine.start(SOURCES, looks=True))
    ensemble = Ensemble([engine])
    joined, _ = ensemble.step(np.array([FAMILY_BEGIN] * 3), ensemble.start(SOURCES, looks=True))
    np.testing.assert_array_equal(joined.everything(), alone.everything())
    np.testing.assert_array_equal(joined.looked_RK, alone.looked_RK)


@pytest.mark.parametrize("looks", [False, True])
def test_of_two_it_is_the_mean_of_their_probabilities(looks: bool) -> None:
    """Also where hypotheses were chosen and sentences have left."""
    engines = [PlainEngine(small_model(family), PADDING) for family in ("paper", "modern")]
    every: list[Engine[Any]] = [*engines, Ensemble(engines)]
    begun = [engine.start(SOURCES, looks=looks) for engine in every]
    states = [engine.step(np.array([FAMILY_BEGIN] * 3), state)[1] for engine, state in zip(every, begun, strict=True)]
    states = [state.select(np.array([1, 1, 2, 2]), np.array([1, 2])) for state in states]
    steps = [engine.step(np.array([5, 6, 7, 8]), state)[0] for engine, state in zip(every, states, strict=True)]
    one, other, joined = (step.everything() for step in steps)
    np.testing.assert_allclose(np.exp(joined), (np.exp(one) + np.exp(other)) / 2, rtol=1e-5)
    looked = [step.looked_RK for step in steps if step.looked_RK is not None]
    assert len(looked) == (3 if looks else 0)
    if looks:
        np.testing.assert_allclose(looked[2], (looked[0] + looked[1]) / 2, rtol=1e-6)


def test_what_nobody_thinks_possible_stays_impossible() -> None:
    class Sure(MadeUp):
        def gains(self, sentence: int, prefix: tuple[int, ...]) -> Floats:  # noqa: ARG002
            return np.array([0.0, -np.inf, -np.inf], dtype=np.float32)

    class Torn(MadeUp):
        def gains(self, sentence: int, prefix: tuple[int, ...]) -> Floats:  # noqa: ARG002
            return np.log(np.array([0.5, 0.5, 0.0], dtype=np.float32))

    with np.errstate(divide="ignore"):
        ensemble = Ensemble([Sure(3), Torn(3)])
        told, _ = ensemble.step(np.array([BEGIN]), ensemble.start([[0]]))
    np.testing.assert_allclose(np.exp(told.everything()), [[0.75, 0.25, 0.0]])


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_its_search_finds_what_exhaustive_search_finds(alpha: float) -> None:
    class Other(MadeUp):
        def logits(self, sentence: int, prefix: tuple[int, ...]) -> Floats:
            return super().logits(sentence + 1000, prefix)

    models: list[MadeUp] = [MadeUp(4), Other(4, sharpness=2.0)]
    ensemble, by_hand = Ensemble(models), Mean(4, models)
    limits, penalty = Limits(begin=BEGIN, end=END, longest=[4, 3]), paper_penalty(alpha)
    found = beam_search(ensemble, ensemble.start([[0], [1]]), limits, width=4**4, penalty=penalty, keep=9)
    for sentence, (ours, longest) in enumerate(zip(found, limits.longest, strict=True)):
        theirs = by_hand.everything(sentence, limits, longest, penalty)[:9]
        assert [(one.ids, one.complete) for one in ours] == [(one.ids, one.complete) for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], rel=1e-5)
