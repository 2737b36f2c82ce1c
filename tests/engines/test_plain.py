"""The engine over the model itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from qkv.data.batch import one_sentence_a_row
from qkv.engines.plain import Logits, PlainEngine
from qkv.layers.attention import recording
from tests.models.families import BEGIN, END, PADDING, VOCABULARY, small_model

SOURCES = [[5, 6, 7, END], [8, END], [9, 5, 6, 7, 8, END]]


def test_continuations_are_the_logarithm_of_a_softmax() -> None:
    logits_RV = torch.randn(4, 9, generator=torch.Generator().manual_seed(1)) + torch.tensor([[0.0], [300], [-50], [7]])
    expected = logits_RV.log_softmax(1)
    ours = Logits(logits_RV, None)
    np.testing.assert_allclose(ours.everything(), expected, atol=1e-4)
    gain_RC, token_RC = ours.best(3)
    best = expected.topk(3)
    assert token_RC.tolist() == best.indices.tolist()
    np.testing.assert_allclose(gain_RC, best.values, atol=1e-4)
    np.testing.assert_allclose(ours.of(np.array([1, 3]), np.array([8, 0])), expected[[1, 3], [8, 0]], atol=1e-4)


def test_what_is_forbidden_is_gone_and_the_rest_keeps_its_probability() -> None:
    logits_RV = torch.randn(3, 9, generator=torch.Generator().manual_seed(1))
    expected = logits_RV.log_softmax(1).numpy()
    ours = Logits(logits_RV, None)
    ours.forbid(np.arange(3)[:, None], np.array([[2, 4]]))
    ours.forbid(np.array([1]), np.array([7]))
    expected[:, [2, 4]] = expected[1, 7] = -np.inf
    np.testing.assert_allclose(ours.everything(), expected, atol=1e-5)
    assert ours.best(99)[1].shape == (3, 9)


@pytest.mark.parametrize("family", ["paper", "modern"])
def test_looks_are_the_attention_of_the_heads_that_were_chosen(family: str) -> None:
    model = small_model(family)
    heads = [(0, 1), (1, 0)]
    engine = PlainEngine(model, PADDING, heads=heads)
    state = engine.start(SOURCES, looks=True)
    begun, state = engine.step(np.array([BEGIN] * 3), state)
    # The second sentence goes on twice, the first is given up.
    state = state.select(np.array([1, 1, 2, 2]), np.array([1, 2]))
    told, _ = engine.step(np.array([5, 6, 7, 8]), state)
    assert begun.looked_RK is not None
    assert told.looked_RK is not None
    np.testing.assert_allclose(begun.looked_RK.sum(1), 1, rtol=1e-5)
    for row, (sentence, token) in enumerate([(1, 5), (1, 6), (2, 7), (2, 8)]):
        source = one_sentence_a_row([SOURCES[sentence]], PADDING)
        target = one_sentence_a_row([[BEGIN, token]], PADDING)
        with torch.no_grad(), recording(model) as recordings:
            model(source, target)
        weights = [recordings[f"decoder.blocks.{layer}.cross_attention"].weight_RHWK for layer, _ in heads]
        expected = sum(one[0, head, 1] for one, (_, head) in zip(weights, heads, strict=True) if one is not None) / 2
        np.testing.assert_allclose(told.looked_RK[row, : len(SOURCES[sentence])], expected, atol=1e-5)
        assert not told.looked_RK[row, len(SOURCES[sentence]) :].any()


def test_nobody_is_told_where_it_looks_unless_asked() -> None:
    engine = PlainEngine(small_model("paper"), PADDING)
    told, _ = engine.step(np.array([BEGIN] * 3), engine.start(SOURCES))
    assert told.looked_RK is None
    assert told.everything().shape == (3, VOCABULARY)
