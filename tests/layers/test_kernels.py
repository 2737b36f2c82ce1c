"""Ways to compute scaled dot-product attention, against each other and against the formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from qkv.layers.kernels import Kernel, Recording, fused, weights
from qkv.layers.visibility import Visible

ROWS, HEADS, LOOKING, SEEN, KEY, VALUE = 2, 3, 5, 7, 4, 6


def attended() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(ROWS, HEADS, LOOKING, KEY, generator=generator),
        torch.randn(ROWS, HEADS, SEEN, KEY, generator=generator),
        torch.randn(ROWS, HEADS, SEEN, VALUE, generator=generator),
    )


def some_visible() -> Tensor:
    visible = torch.rand(ROWS, 1, LOOKING, SEEN, generator=torch.Generator().manual_seed(2)) < 0.5
    visible[..., 0] = True
    assert not visible.all()
    return visible


VISIBLE = {
    "all": None,
    "some": Visible(some_visible()),
    "some, alike in all rows": Visible(some_visible()[:1]),
    "some, alike for all that look": Visible(some_visible()[:, :, :1]),
}


@pytest.mark.parametrize("visible", VISIBLE.values(), ids=VISIBLE.keys())
def test_recording_agrees_with_fused(visible: Visible | None) -> None:
    query, key, value = attended()
    torch.testing.assert_close(Recording()(query, key, value, visible), fused(query, key, value, visible))


@pytest.mark.parametrize("visible", VISIBLE.values(), ids=VISIBLE.keys())
def test_recording_agrees_with_fused_in_its_gradients(visible: Visible | None) -> None:
    gradients = []
    kernels: list[Kernel] = [Recording(), fused]
    for kernel in kernels:
        query, key, value = (part.requires_grad_() for part in attended())
        mixed = kernel(query, key, value, visible)
        gradients.append(torch.autograd.grad(mixed.square().sum(), [query, key, value]))
    torch.testing.assert_close(gradients[0], gradients[1])


def test_weights_are_a_softmax_over_scaled_products_of_what_is_visible() -> None:
    query, key, _ = attended()
    visible = some_visible()
    weight = weights(query, key, Visible(visible))
    for r, h, w in [(0, 0, 0), (1, 2, 4), (0, 1, 3)]:
        exponents = [
            math.exp(sum((query[r, h, w] * key[r, h, k]).tolist()) / math.sqrt(KEY)) if visible[r, 0, w, k] else 0.0
            for k in range(SEEN)
        ]
        expected = [one / sum(exponents) for one in exponents]
        torch.testing.assert_close(weight[r, h, w], torch.tensor(expected))


def test_recording_keeps_the_weights_of_its_last_call() -> None:
    query, key, value = attended()
    recording = Recording()
    assert recording.weight_RHWK is None
    recording(query[:1], key[:1], value[:1], None)
    recording(query, key, value, None)
    assert recording.weight_RHWK is not None
    torch.testing.assert_close(recording.weight_RHWK, weights(query, key, None))
