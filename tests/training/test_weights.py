"""The exact weights of a model that learns, and those it computes with."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from qkv.training.weights import Weights


def small() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(3, 2)


def test_in_float32_both_are_the_same_tensors() -> None:
    model = small()
    own = dict(model.named_parameters())
    weights = Weights(model, torch.float32)
    assert weights.exact.keys() == own.keys()
    assert all(weights.exact[name] is own[name] is dict(model.named_parameters())[name] for name in own)
    assert [id(one) for one in weights.used] == [id(one) for one in model.parameters()]


def test_in_bfloat16_the_model_has_a_copy_and_the_exact_weights_are_not_rounded() -> None:
    model, original = small(), small().weight.detach()
    weights = Weights(model, torch.bfloat16)
    assert {one.dtype for one in model.parameters()} == {torch.bfloat16}
    assert torch.equal(weights.exact["weight"], original)
    assert not torch.equal(original.bfloat16().float(), original)
    assert torch.equal(model.weight, original.bfloat16())


def test_exact_weights_keep_what_bfloat16_would_round_away() -> None:
    """A hundred moves, none of which alone would change a weight of one."""
    model = small()
    weights = Weights(model, torch.bfloat16)
    narrow = torch.ones(2, dtype=torch.bfloat16)
    with torch.no_grad():
        weights.exact["bias"].fill_(1.0)
        for _ in range(100):
            weights.exact["bias"].add_(1e-3)
            narrow += 1e-3
            weights.publish()
    assert narrow.tolist() == [1.0, 1.0]
    assert weights.exact["bias"].tolist() == pytest.approx([1.1, 1.1], rel=1e-5)
    assert torch.equal(model.bias, torch.full((2,), 1.1).bfloat16())


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_gradients_of_parts_add_up(precision: torch.dtype) -> None:
    """In float32: 256 and 1 are 256 in bfloat16."""
    weights = Weights(small(), precision)

    def gradients(value: float) -> tuple[Tensor, ...]:
        return tuple(torch.full_like(one, value) for one in weights.used)

    for _ in range(2):
        # What a step before has left does not count.
        weights.add_gradients(gradients(256.0), first=True)
        weights.add_gradients(gradients(1.0), first=False)
        for one in weights.exact.values():
            assert one.grad is not None and one.grad.dtype == torch.float32
            assert torch.equal(one.grad, torch.full_like(one, 257.0))
    assert len(weights.gradients()) == 2


def test_in_bfloat16_gradients_lie_at_the_same_place_each_time() -> None:
    """A captured step knows them by their address."""
    weights = Weights(small(), torch.bfloat16)
    before = [one.data_ptr() for one in weights.gradients()]
    for first in (True, False, True):
        weights.add_gradients(tuple(torch.ones_like(one) for one in weights.used), first=first)
    assert [one.data_ptr() for one in weights.gradients()] == before


def test_every_exact_weight_knows_its_name() -> None:
    weights = Weights(small(), torch.bfloat16)
    assert [weights.name(one) for one in weights.exact.values()] == ["weight", "bias"]


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_loaded_weights_reach_the_model(precision: torch.dtype) -> None:
    model = small()
    weights = Weights(model, precision)
    weights.load({"weight": torch.full((2, 3), 0.3), "bias": torch.zeros(2)})
    assert torch.equal(weights.exact["weight"], torch.full((2, 3), 0.3))
    assert torch.equal(model.weight, torch.full((2, 3), 0.3, dtype=precision))


def test_weights_of_another_model_are_refused() -> None:
    weights = Weights(small(), torch.bfloat16)
    with pytest.raises(KeyError, match="bias"):
        weights.load({"weight": torch.zeros(2, 3)})
    with pytest.raises(RuntimeError, match="weight has another shape"):
        weights.load({"weight": torch.zeros(1, 3), "bias": torch.zeros(2)})


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_inside_the_model_computes_with_others_and_afterwards_with_its_own_at_the_same_place(
    precision: torch.dtype,
) -> None:
    model = small()
    weights = Weights(model, precision)
    x = torch.ones(1, 3, dtype=precision)
    before, places = model(x), [one.data_ptr() for one in model.parameters()]
    others = {"weight": torch.full((2, 3), 2.0), "bias": torch.ones(2)}
    with pytest.raises(ZeroDivisionError), weights.replaced_by(others):
        assert model(x).tolist() == [[7.0, 7.0]]
        raise ZeroDivisionError
    assert torch.equal(model(x), before)
    assert [one.data_ptr() for one in model.parameters()] == places
