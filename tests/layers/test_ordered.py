"""Linear layers with ordered weights compute what plain ones do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from qkv.config import ModelConfig
from qkv.data.batch import Packed
from qkv.layers.ordered import OrderedLinear, can_order, order
from qkv.models.build import build, order_weights


@pytest.mark.parametrize("rows", [1, 7, 8, 33])
@pytest.mark.parametrize("bias", [True, False])
def test_an_ordered_layer_computes_what_the_plain_one_does(rows: int, bias: bool) -> None:
    plain = nn.Linear(24, 37, bias=bias)
    x = torch.randn(3, rows, 24)
    torch.testing.assert_close(OrderedLinear(plain.weight, plain.bias)(x), plain(x).detach())


def test_every_linear_layer_is_ordered() -> None:
    model = build(ModelConfig(width=24, heads=3, hidden=40, encoder_layers=1, decoder_layers=2), 61, seed=1)
    linear = sum(isinstance(part, nn.Linear) for part in model.modules())
    order(model)
    assert sum(isinstance(part, OrderedLinear) for part in model.modules()) == linear > 0
    assert not any(isinstance(part, nn.Linear) for part in model.modules())


def test_a_model_of_ordered_weights_gives_the_same_logits() -> None:
    model = build(ModelConfig(width=24, heads=3, hidden=40, encoder_layers=1, decoder_layers=2), 61, seed=1).eval()
    ids_RW = torch.randint(4, 61, (5, 11))
    side = Packed(ids_RW, torch.arange(11).expand_as(ids_RW), torch.ones_like(ids_RW))
    with torch.no_grad():
        before_RWV = model(side, side)
        order_weights(model)
        after_RWV = model(side, side)
    torch.testing.assert_close(after_RWV, before_RWV)


def test_only_on_a_cpu_weights_are_ordered() -> None:
    assert can_order(torch.device("cpu"))
    assert not can_order(torch.device("cuda"))
