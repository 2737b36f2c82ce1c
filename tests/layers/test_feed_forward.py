"""Feed-forward networks, against their formulas."""

from __future__ import annotations

import torch

from qkv.layers.feed_forward import FeedForward, GatedFeedForward

ROWS, POSITIONS, WIDTH, HIDDEN = 2, 3, 4, 7


def test_the_papers_is_equation_2() -> None:
    torch.manual_seed(1)
    layer, x = FeedForward(WIDTH, HIDDEN), torch.randn(ROWS, POSITIONS, WIDTH)
    widen, narrow = layer.widen, layer.narrow
    expected = torch.maximum(torch.zeros(()), x @ widen.weight.T + widen.bias) @ narrow.weight.T + narrow.bias
    torch.testing.assert_close(layer(x), expected)


def test_the_gated_one_multiplies_its_halves() -> None:
    torch.manual_seed(1)
    layer, x = GatedFeedForward(WIDTH, HIDDEN), torch.randn(ROWS, POSITIONS, WIDTH)
    gate = x @ layer.gate.weight.T
    expected = (gate * torch.sigmoid(gate) * (x @ layer.widen.weight.T)) @ layer.narrow.weight.T
    torch.testing.assert_close(layer(x), expected)
