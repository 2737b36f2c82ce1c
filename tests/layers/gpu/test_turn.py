"""Queries and keys normed and turned in one pass, against one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from qkv.layers.attention import normed_and_turned as plain
from qkv.layers.positions import Rotary, Still, Turn
from tests.layers.gpu.twins import Lying, agree, exact, in_both_precisions, in_columns, in_rows_or_not, numbers, results

ROWS, HEADS, POSITIONS = 2, 3, 5
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda _: nn.Identity(),
    "rms": partial(nn.RMSNorm, eps=1e-6),
}


@in_both_precisions
@pytest.mark.parametrize("turn", [Still, Rotary])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("positions", "width"), [(POSITIONS, 16), (POSITIONS, 24), (128, 64), (POSITIONS, 2)])
def test_it_is_the_norm_and_then_the_turn(
    device: torch.device,
    precision: torch.dtype,
    turn: type[Still] | type[Rotary],
    norm: str,
    positions: int,
    width: int,
) -> None:
    """As they come from a projection, a position's heads side by side; in one program a row, and in several."""
    from qkv.layers.gpu.turn import normed_and_turned

    part = NORMS[norm](width).to(device)
    torch.manual_seed(1)
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    part.to(precision)
    x = numbers(ROWS, positions, HEADS, width, seed=2, device=device, precision=precision)
    # Two sentences, and one whose last token stands farther on.
    places = torch.arange(positions, device=device).repeat(ROWS, 1)
    places[0, positions // 2 + 1 :] -= positions // 2 + 1
    places[1, -1] = max(positions - 1, 90)
    ours = results([normed_and_turned(x.transpose(1, 2), places, part, turn())], [x, *part.parameters()])
    (exact_x,) = exact([x])
    part.float()
    outputs = [plain(exact_x.transpose(1, 2), places, part, turn())]
    agree(ours, results(outputs, [exact_x, *part.parameters()]), factor=2)


def test_the_gradient_of_the_gain_is_summed_in_float32(device: torch.device) -> None:
    """In bfloat16, 256 and 1 are 256: over the heads of a program, and over programs."""
    from qkv.layers.gpu.turn import normed_and_turned

    width = 16
    norm = nn.RMSNorm(width, eps=1e-30).to(device, torch.bfloat16)
    # Its own norm.
    sign = torch.ones(width, device=device)
    sign[::2] = -1
    x = sign.bfloat16().expand(2, 2, 1, -1)
    asked = torch.tensor([[256.0, 1.0], [-256.0, 0.0]], device=device).bfloat16()[:, :, None, None].expand_as(x)
    turned = normed_and_turned(x, torch.zeros(2, 1, dtype=torch.long, device=device), norm, Still())
    (made,) = torch.autograd.grad(turned, [norm.weight], asked)
    torch.testing.assert_close(made.float(), sign, rtol=0, atol=1e-2)


class Back(Rotary):
    """Looks like a turn that the kernel knows."""

    def forward(self, x_RHWE: Tensor, positions_RW: Tensor) -> Tensor:
        return super().forward(x_RHWE, -positions_RW)


class Negative(nn.Module):
    def forward(self, x_RHWE: Tensor, positions_RW: Tensor) -> Tensor:  # noqa: ARG002
        return -x_RHWE


@pytest.mark.parametrize(
    ("norm", "turn"),
    [
        (nn.LayerNorm, Rotary),
        (nn.LayerNorm, Still),
        (nn.RMSNorm, Rotary),
        (partial(nn.RMSNorm, elementwise_affine=False, eps=1e-6), Still),
        (NORMS["none"], Back),
        (NORMS["none"], Negative),
        (NORMS["rms"], Negative),
    ],
)
def test_a_norm_or_turn_that_the_kernel_does_not_know_goes_the_plain_way(
    device: torch.device, norm: Callable[[int], nn.Module], turn: Callable[[], Turn]
) -> None:
    from qkv.layers.gpu.turn import normed_and_turned

    part = norm(16).to(device)
    x = numbers(ROWS, HEADS, POSITIONS, 16, seed=1, device=device)
    places = torch.arange(POSITIONS, device=device).expand(ROWS, -1)
    made = [results([one(x + 1, places, part, turn())], [x, *part.parameters()]) for one in (normed_and_turned, plain)]
    agree(*made)


@in_rows_or_not
def test_what_is_given_and_what_is_asked_may_lie_in_memory_in_any_way(device: torch.device, lying: Lying) -> None:
    """Positions as well: a row's in the place of all."""
    from qkv.layers.gpu.turn import normed_and_turned

    x = numbers(ROWS, HEADS, POSITIONS, 16, seed=1, device=device)
    places = torch.arange(POSITIONS, device=device).expand(ROWS, -1)
    made = [
        results([one(in_columns(x), places, nn.Identity(), Rotary())], [x], lying=lying)
        for one in (normed_and_turned, plain)
    ]
    agree(*made)


def test_a_head_of_one_number_has_no_pairs_and_goes_the_plain_way(device: torch.device) -> None:
    from qkv.layers.gpu.turn import normed_and_turned

    x, norm = numbers(ROWS, HEADS, POSITIONS, 1, seed=1, device=device), NORMS["rms"](1).to(device)
    places = torch.arange(POSITIONS, device=device).repeat(ROWS, 1)
    assert torch.equal(normed_and_turned(x, places, norm, Still()), plain(x, places, norm, Still()))
