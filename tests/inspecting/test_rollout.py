"""Attention rollout, against what one computes by hand."""

from __future__ import annotations

import numpy as np

from qkv.inspecting.rollout import rollout, rollout_across
from qkv.search.engine import Floats

# Two heads each: their means are [[1, 0], [½, ½]] and [[¾, ¼], [0, 1]].
FIRST = [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
SECOND = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]]


def test_two_layers_are_what_they_are_by_hand() -> None:
    # Half of itself and half of the mean: [[1, 0], [¼, ¾]], then [[⅞, ⅛], [0, 1]]; the second of the first.
    by_hand = [[7 / 8 + 1 / 32, 3 / 32], [1 / 4, 3 / 4]]
    np.testing.assert_allclose(rollout(np.array([FIRST, SECOND], np.float32)), by_hand)


def test_one_layer_of_each_is_what_it_is_by_hand() -> None:
    encoder = np.array([FIRST], np.float32)
    decoder = np.array([SECOND], np.float32)
    cross = np.array([[[[0.0, 1.0], [1.0, 0.0]]]], np.float32)
    of_source, of_read = rollout_across(encoder, decoder, cross)
    # Half of what was read, [[⅞, ⅛], [0, 1]], and half of what the cross-attention takes of [[1, 0], [¼, ¾]].
    np.testing.assert_allclose(of_read, [[7 / 16, 1 / 16], [0, 1 / 2]])
    np.testing.assert_allclose(of_source, [[1 / 8, 3 / 8], [1 / 2, 0]])


def test_shares_sum_to_one() -> None:
    draw = np.random.default_rng(5)

    def weights(layers: int, heads: int, rows: int, columns: int) -> Floats:
        weight: Floats = draw.random((layers, heads, rows, columns)).astype(np.float32)
        weight /= weight.sum(-1, keepdims=True)
        return weight

    encoder, decoder, cross = weights(3, 2, 5, 5), weights(4, 2, 6, 6), weights(4, 2, 6, 5)
    np.testing.assert_allclose(rollout(encoder).sum(-1), 1, rtol=1e-5)
    of_source, of_read = rollout_across(encoder, decoder, cross)
    np.testing.assert_allclose(of_source.sum(-1) + of_read.sum(-1), 1, rtol=1e-5)
