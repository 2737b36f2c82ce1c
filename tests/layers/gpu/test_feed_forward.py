"""Feed-forward networks in few passes, against the plain ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from tests.layers.gpu.twins import agree, exact, in_both_precisions, numbers, results

WIDTH, HIDDEN = 6, 44
NETWORKS = {FeedForward: "relu_network", GatedFeedForward: "gated_network"}


@in_both_precisions
@pytest.mark.parametrize(
    ("kind", "positions", "width", "hidden"),
    [
        (FeedForward, 3, WIDTH, HIDDEN),
        (FeedForward, 70, WIDTH, HIDDEN),
        (FeedForward, 35, 512, 2048),
        (GatedFeedForward, 3, WIDTH, HIDDEN),
        (GatedFeedForward, 70, WIDTH, HIDDEN),
        (GatedFeedForward, 35, 512, 1344),
    ],
)
def test_it_is_the_plain_network(
    device: torch.device,
    precision: torch.dtype,
    kind: type[FeedForward] | type[GatedFeedForward],
    positions: int,
    width: int,
    hidden: int,
) -> None:
    """With fewer positions than a program works on, and with some more; and so with the hidden layer."""
    from qkv.layers.gpu import feed_forward

    torch.manual_seed(1)
    part: nn.Module = kind(width, hidden).to(device, precision)
    x = numbers(2, positions, width, seed=2, device=device, precision=precision)
    (exact_x,) = exact([x])
    part.float()
    expected = results([part(exact_x)], [exact_x, *part.parameters()])
    part.to(precision)
    part.network = getattr(feed_forward, NETWORKS[kind])
    agree(results([part(x)], [x, *part.parameters()]), expected, factor=2)


@in_both_precisions
@pytest.mark.parametrize("hidden_width", [HIDDEN, 1344])
def test_the_gradient_is_cut_off_in_place_where_nothing_came_through(
    device: torch.device, precision: torch.dtype, hidden_width: int
) -> None:
    from qkv.layers.gpu.feed_forward import cut_off

    hidden = numbers(70, hidden_width, seed=1, device=device, precision=precision).detach().relu()
    gradient = numbers(70, hidden_width, seed=2, device=device, precision=precision).detach()
    expected = gradient * (hidden > 0)
    summed = cut_off(gradient, hidden)
    assert torch.equal(gradient, expected)
    agree([summed], [expected.float().sum(0)])


def test_the_sum_of_a_gradient_is_taken_in_float32(device: torch.device) -> None:
    """In bfloat16, 256 and 1 are 256: within a program, and over programs."""
    from qkv.layers.gpu import feed_forward

    gradient = torch.zeros(2 * feed_forward._ROWS, HIDDEN, device=device, dtype=torch.bfloat16)
    gradient[0], gradient[feed_forward._AT_ONCE], gradient[feed_forward._ROWS] = 256, 1, -256
    summed = feed_forward.cut_off(gradient, torch.ones_like(gradient))
    assert torch.equal(summed, torch.ones_like(summed))
