"""The sum of residual and sub-layer with its norm in one pass, against the parts one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from qkv.layers import residual as plain
from qkv.layers.dropout import Dropout
from tests.layers.gpu.dropping import PROBABILITY, check_dropout
from tests.layers.gpu.twins import Lying, agree, exact, in_both_precisions, in_rows_or_not, numbers, results

ROWS, POSITIONS, WIDTH = 2, 5, 24
Norm = nn.LayerNorm | nn.RMSNorm
NORMS: dict[str, Callable[[int], Norm]] = {"layer": nn.LayerNorm, "rms": partial(nn.RMSNorm, eps=1e-6)}
every_norm = pytest.mark.parametrize("norm", NORMS)
both_orders = pytest.mark.parametrize("order", ["norm_of_sum", "sum_and_norm"])


def random_norm(name: str, device: torch.device, precision: torch.dtype, width: int = WIDTH) -> Norm:
    """With gain and shift that are not those a norm begins with."""
    norm = NORMS[name](width).to(device)
    torch.manual_seed(3)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm.to(precision)


@in_both_precisions
@every_norm
@both_orders
@pytest.mark.parametrize(("width", "used"), [(WIDTH, (0, 1)), (WIDTH, (0,)), (WIDTH, (1,)), (512, (0, 1))])
def test_sum_and_norm_are_those_of_the_plain_parts(
    device: torch.device, precision: torch.dtype, norm: str, order: str, width: int, used: tuple[int, ...]
) -> None:
    from qkv.layers.gpu import residual

    part = random_norm(norm, device, precision, width)
    x, y = (numbers(ROWS, POSITIONS, width, seed=seed, device=device, precision=precision) for seed in (1, 2))
    outputs = getattr(residual, order)(x, y, part, Dropout(0.0))
    ours = results(outputs, [x, y, *part.parameters()], used=used)
    exact_x, exact_y = exact([x, y])
    part.float()
    outputs = getattr(plain, order)(exact_x, exact_y, part, Dropout(0.0))
    agree(ours, results(outputs, [exact_x, exact_y, *part.parameters()], used=used), factor=2)


@in_both_precisions
@every_norm
@both_orders
def test_where_numbers_are_small_epsilon_is_most_of_what_they_are_divided_by(
    device: torch.device, precision: torch.dtype, norm: str, order: str
) -> None:
    """And all of it where there is nothing."""
    from qkv.layers.gpu import residual

    part = random_norm(norm, device, precision)
    part.eps = 4e-6
    x, y = (numbers(ROWS, POSITIONS, WIDTH, seed=seed, device=device, precision=precision) for seed in (1, 2))
    with torch.no_grad():
        for one in (x, y):
            one *= 1e-3
            one[0, 2] = 0
    outputs = getattr(residual, order)(x, y, part, Dropout(0.0))
    ours = results(outputs, [x, y, *part.parameters()])
    exact_x, exact_y = exact([x, y])
    part.float()
    outputs = getattr(plain, order)(exact_x, exact_y, part, Dropout(0.0))
    agree(ours, results(outputs, [exact_x, exact_y, *part.parameters()]), factor=2)


@every_norm
@both_orders
def test_positions_more_than_the_programs_of_the_backward_pass(
    device: torch.device, norm: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each program then goes through several positions, the last through fewer."""
    from qkv.layers.gpu import residual

    monkeypatch.setattr(residual, "PROGRAMS", 2)
    part = random_norm(norm, device, torch.float32)
    x, y = (numbers(3, 7, WIDTH, seed=seed, device=device) for seed in (1, 2))
    made = [
        results(getattr(one, order)(x, y, part, Dropout(0.0)), [x, y, *part.parameters()]) for one in (residual, plain)
    ]
    agree(*made)


@every_norm
def test_gradients_of_gain_and_shift_are_summed_in_float32(
    device: torch.device, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bfloat16 a sum of 256 would stay there, however often less than one is added."""
    from qkv.layers.gpu import residual

    monkeypatch.setattr(residual, "PROGRAMS", 1)
    at_a_time, times, width = residual.BACKWARD["ROWS"], 17, 16
    part = NORMS[norm](width).to(device, torch.bfloat16)
    # Its own norm, whatever the norm: of mean 0 and square 1.
    sign = torch.ones(width, device=device)
    sign[::2] = -1
    x = sign.bfloat16().expand(1, times * at_a_time, -1)
    asked = torch.full(x.shape, 0.75, device=device)
    asked[:, :at_a_time] = 256
    _, normed = residual.sum_and_norm(x, torch.zeros_like(x), part, Dropout(0.0))
    made = torch.autograd.grad((normed.float() * asked).sum(), list(part.parameters()))
    total = at_a_time * (256 + 0.75 * (times - 1))
    # Of the gain, and of the shift where there is one.
    for ours, expected in zip(made, [sign * total, torch.full_like(sign, total)], strict=False):
        torch.testing.assert_close(ours.float(), expected, rtol=2**-7, atol=0)


class Doubled(nn.LayerNorm):
    """Looks like a norm that the kernel knows."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


@both_orders
@pytest.mark.parametrize(
    "norm",
    [
        partial(nn.LayerNorm, bias=False),
        partial(nn.LayerNorm, elementwise_affine=False),
        partial(nn.RMSNorm, elementwise_affine=False, eps=1e-6),
        nn.RMSNorm,
        Doubled,
        lambda _width: nn.Identity(),
    ],
    ids=["no shift", "neither gain nor shift", "no gain", "no epsilon of its own", "a norm of norms", "none"],
)
def test_a_norm_that_the_kernel_does_not_know_goes_the_plain_way(
    device: torch.device, order: str, norm: Callable[[int], nn.Module]
) -> None:
    from qkv.layers.gpu import residual

    part = norm(WIDTH).to(device)
    # Of a mean that a norm without its own would miss.
    x, y = (numbers(ROWS, POSITIONS, WIDTH, seed=seed, device=device) for seed in (1, 2))
    made = [
        results(getattr(one, order)(x + 2, y, part, Dropout(0.0)), [x, y, *part.parameters()])
        for one in (residual, plain)
    ]
    agree(*made)


def test_rows_in_another_order_in_memory_are_read_as_they_are(device: torch.device) -> None:
    from qkv.layers.gpu import residual

    part = random_norm("layer", device, torch.float32)
    x, y = (numbers(POSITIONS, ROWS, WIDTH, seed=seed, device=device) for seed in (1, 2))
    made = [
        results(one.sum_and_norm(x.transpose(0, 1), y.transpose(0, 1), part, Dropout(0.0)), [x, y])
        for one in (residual, plain)
    ]
    agree(*made)


@every_norm
@both_orders
@in_rows_or_not
def test_what_is_asked_may_lie_in_memory_in_any_way(device: torch.device, norm: str, order: str, lying: Lying) -> None:
    from qkv.layers.gpu import residual

    part = random_norm(norm, device, torch.float32)
    x, y = (numbers(ROWS, POSITIONS, WIDTH, seed=seed, device=device) for seed in (1, 2))
    made = [
        results(getattr(one, order)(x, y, part, Dropout(0.0)), [x, y, *part.parameters()], lying=lying)
        for one in (residual, plain)
    ]
    agree(*made)


def test_dropout_falls_on_what_the_sub_layer_says(device: torch.device) -> None:
    from qkv.layers.gpu import residual

    shape = (4, 32, 48)
    norm = nn.LayerNorm(shape[-1], device=device)
    nothing = torch.zeros(shape, device=device)

    def drop(y: Tensor) -> Tensor:
        total, _ = residual.sum_and_norm(nothing, y, norm, Dropout(PROBABILITY))
        return total

    check_dropout(drop, shape, device)


def test_what_is_dropped_depends_on_all_of_a_seed(device: torch.device) -> None:
    """It has 64 bits, of which 32 at a time are mixed with a place."""
    from qkv.layers.gpu import residual

    y = torch.ones(4, 32, 48, device=device)
    gain, shift = torch.ones(2, 48, device=device)

    def left_out(low: int, high: int) -> Tensor:
        seed = torch.tensor((high << 32) + low, device=device)
        total: Tensor = residual._AddAndNorm.apply(torch.zeros_like(y), y, gain, shift, seed, 1e-5, 0.5)[0]  # type: ignore[no-untyped-call]
        return total == 0

    drawn = left_out(5, 7)
    for other in (left_out(6, 7), left_out(5, 8)):
        assert (drawn != other).float().mean().item() > 0.3


@every_norm
@both_orders
def test_with_dropout_both_are_those_of_what_was_kept(device: torch.device, norm: str, order: str) -> None:
    """Forward and backward, with a plain part that drops what the fast one dropped."""
    from qkv.layers.gpu import residual

    part = random_norm(norm, device, torch.float32)
    x, y = (numbers(ROWS, POSITIONS, WIDTH, seed=seed, device=device) for seed in (1, 2))
    torch.manual_seed(4)
    total, _ = residual.sum_and_norm(x, y, part, Dropout(PROBABILITY))
    kept = ((total - x).detach().abs() > 1e-5).float() / (1 - PROBABILITY)
    assert 0 < kept.count_nonzero() < kept.numel()
    torch.manual_seed(4)
    ours = results(getattr(residual, order)(x, y, part, Dropout(PROBABILITY)), [x, y, *part.parameters()])
    expected = results(getattr(plain, order)(x, y * kept, part, Dropout(0.0)), [x, y, *part.parameters()])
    agree(ours, expected)


def test_nothing_is_dropped_when_the_model_does_not_learn(device: torch.device) -> None:
    from qkv.layers.gpu import residual

    part = random_norm("rms", device, torch.float32)
    x, y = (numbers(ROWS, POSITIONS, WIDTH, seed=seed, device=device) for seed in (1, 2))
    dropout = Dropout(PROBABILITY).eval()
    agree(residual.norm_of_sum(x, y, part, dropout), plain.norm_of_sum(x, y, part, dropout))
