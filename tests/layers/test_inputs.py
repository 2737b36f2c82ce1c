"""Embeddings with their positions."""

from __future__ import annotations

import math

import torch
from torch import nn

from qkv.layers.inputs import TokenInputs
from qkv.layers.positions import Sinusoids

VOCABULARY, WIDTH = 11, 6


def test_tokens_are_scaled_by_the_root_of_the_width_before_positions_are_added() -> None:
    inputs = TokenInputs(VOCABULARY, WIDTH, Sinusoids(WIDTH), dropout=0.0)
    nn.init.normal_(inputs.weight_VD, generator=torch.Generator().manual_seed(1))
    ids, positions = torch.tensor([[3, 10, 0], [1, 1, 2]]), torch.tensor([[0, 1, 2], [0, 0, 1]])
    x = inputs(ids, positions)
    assert x.shape == (2, 3, WIDTH)
    for r in range(2):
        for w in range(3):
            expected = inputs.weight_VD[ids[r, w]] * math.sqrt(WIDTH) + Sinusoids(WIDTH)(
                positions[r : r + 1, w : w + 1]
            )
            torch.testing.assert_close(x[r, w], expected[0, 0])


def test_dropout_falls_on_the_sum_of_token_and_position() -> None:
    """Section 5.4: "to the sums of the embeddings and the positional encodings"."""
    inputs = TokenInputs(VOCABULARY, WIDTH, Sinusoids(WIDTH), dropout=0.5)
    nn.init.ones_(inputs.weight_VD)
    torch.manual_seed(1)
    ids, positions = torch.zeros(4, 50, dtype=torch.long), torch.zeros(4, 50, dtype=torch.long)
    dropped = inputs(ids, positions)
    full = inputs.eval()(ids, positions)
    kept = dropped != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(dropped, torch.where(kept, 2 * full, 0))
