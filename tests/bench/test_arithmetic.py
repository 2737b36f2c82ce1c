"""The operations that a model's sizes say are those that torch counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bench.arithmetic import operations, operations_a_token
from qkv.config import ModelConfig
from qkv.data.batch import Packed, PairBatch
from qkv.models.build import build
from qkv.recipes import recipe
from qkv.training.objective import Goal, translation_loss

VOCABULARY = 40
SIZES = ModelConfig(width=24, heads=3, key_width=4, value_width=6, hidden=20, encoder_layers=3, decoder_layers=2)


def counted(config: ModelConfig, source: int, target: int) -> int:
    """Of learning from a pair of these lengths, by torch; it knows the products of attention when they are plain."""
    model = build(config, VOCABULARY, seed=1)
    batch = PairBatch(side(source), side(target), torch.full((1, target), 5), source, target)
    # A product that is added to what is there it does not know of by itself.
    more = {torch.ops.aten.addmm_: lambda _total, one, other, **_: 2 * one.numel() * other[1]}
    with FlopCounterMode(display=False, custom_mapping=more) as counter, sdpa_kernel(SDPBackend.MATH):
        loss = translation_loss(model, batch, Goal(smoothing=0.1))
        torch.autograd.grad(loss.total, list(model.parameters()))
    return int(counter.get_total_flops())


def side(length: int) -> Packed:
    ids_RW = torch.full((1, length), 5)
    return Packed(ids_RW, torch.arange(length).unsqueeze(0), torch.ones_like(ids_RW))


@pytest.mark.parametrize("target", [1, 7])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feed_forward": "gated"},
        {"residual": "pre", "norm": "rms", "positions": "rotary", "query_key_norm": "rms"},
        {"key_width": None, "value_width": None, "encoder_layers": 1, "decoder_layers": 4},
    ],
)
def test_operations_are_those_that_torch_counts(changes: dict[str, Any], target: int) -> None:
    config = ModelConfig(**{**vars(SIZES), **changes})
    source = 11
    # Torch counts the later words as well, which plain products compute in vain.
    later = target * (target - 1) // 2 * config.decoder_layers
    in_vain = 3 * 2 * later * config.heads * (config.head_key_width + config.head_value_width)
    assert (
        operations(config, VOCABULARY, np.array([source]), np.array([target]))
        == counted(config, source, target) - in_vain
    )


def test_pairs_add_up_and_their_tokens_share() -> None:
    source, target = np.array([3, 8]), np.array([5, 2])
    one, other = (operations(SIZES, VOCABULARY, source[[place]], target[[place]]) for place in (0, 1))
    assert operations(SIZES, VOCABULARY, source, target) == one + other
    assert operations_a_token(SIZES, VOCABULARY, source, target) == pytest.approx((one + other) / 18)


@pytest.mark.parametrize(("name", "millions"), [("base", 190), ("big", 645)])
def test_a_token_of_the_papers_models_takes_as_many_as_reckoned_by_hand(name: str, millions: float) -> None:
    """For sentences of 30 tokens and 37,000 subwords: 6 (N(4d² + 2df) + 2Nd² + N(6d² + 2df) + dV) and attention."""
    length = np.array([30])
    found = operations_a_token(recipe(name).model, 37_000, length, length)
    assert found == pytest.approx(millions * 1e6, rel=2e-3)
