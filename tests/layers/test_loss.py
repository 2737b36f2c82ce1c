"""The chunked loss, against the library's own functions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from qkv.layers import loss as module
from qkv.layers.loss import IGNORED, Loss, agreeing_cross_entropy, smoothed_cross_entropy
from tests.layers.plain_loss import plain_smoothed_cross_entropy

POSITIONS, WIDTH, VOCABULARY = 23, 6, 17


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks, the last of them shorter."""
    monkeypatch.setattr(module, "CHUNKS", module.CHUNKS._replace(positions=5))


def test_every_positions_logits_begin_where_a_gpu_likes_to() -> None:
    x, weight, _ = inputs()
    logits = module.aligned_logits(x.detach(), weight.detach())
    assert (logits.shape, logits.stride(0) % 128) == ((POSITIONS, VOCABULARY), 0)


def inputs(*, ignored: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(POSITIONS, WIDTH, generator=generator)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator)
    label = torch.randint(VOCABULARY, (POSITIONS,), generator=generator)
    label[torch.randperm(POSITIONS, generator=generator)[:ignored]] = IGNORED
    return x.requires_grad_(), weight.requires_grad_(), label


def gradients(loss: Loss, *of: Tensor, scale: float = 1.0) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss.total * scale, of)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("ignored", [0, 8, POSITIONS])
def test_loss_and_gradients_agree_with_the_plain_ones(smoothing: float, ignored: int) -> None:
    x, weight, label = inputs(ignored=ignored)
    ours = smoothed_cross_entropy(x, weight, label, smoothing=smoothing)
    plain = plain_smoothed_cross_entropy(x, weight, label, smoothing=smoothing)
    torch.testing.assert_close(ours, plain)
    assert ours.tokens == POSITIONS - ignored
    torch.testing.assert_close(gradients(ours, x, weight, scale=0.3), gradients(plain, x, weight, scale=0.3))


def test_the_size_of_a_chunk_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, label = inputs()
    several = smoothed_cross_entropy(x, weight, label, smoothing=0.1)
    monkeypatch.setattr(module, "CHUNKS", module.CHUNKS._replace(positions=1000))
    one = smoothed_cross_entropy(x, weight, label, smoothing=0.1)
    torch.testing.assert_close(several, one)
    torch.testing.assert_close(gradients(several, x, weight), gradients(one, x, weight))


def test_without_gradients_the_loss_is_the_same_and_none_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, label = inputs()
    expected = smoothed_cross_entropy(x, weight, label, smoothing=0.1)
    # The gradient of the weight is the one tensor that is made of zeros in the weight's shape.
    monkeypatch.setattr(torch, "zeros_like", None)
    for silence in (torch.no_grad, torch.inference_mode):
        with silence():
            loss = smoothed_cross_entropy(x, weight, label, smoothing=0.1)
        torch.testing.assert_close(loss, expected)
        assert not loss.total.requires_grad


def narrowed(*some: Tensor) -> tuple[Tensor, ...]:
    return tuple(one.detach().bfloat16().requires_grad_() for one in some)


def test_in_bfloat16_it_agrees_within_its_precision() -> None:
    x, weight, label = inputs()
    exact = plain_smoothed_cross_entropy(x, weight, label, smoothing=0.1)
    narrow_x, narrow_weight = narrowed(x, weight)
    loss = smoothed_cross_entropy(narrow_x, narrow_weight, label, smoothing=0.1)
    torch.testing.assert_close(loss, exact, rtol=0.01, atol=0)
    for ours, theirs in zip(gradients(loss, narrow_x, narrow_weight), gradients(exact, x, weight), strict=True):
        torch.testing.assert_close(ours.float(), theirs, rtol=0.02, atol=0.02 * theirs.abs().max().item())


def test_in_bfloat16_gradients_are_scaled_by_a_number_that_bfloat16_has_not() -> None:
    """A token's share of a batch of 65,400, rounded to bfloat16, would be 0.2 % off."""
    share = 1 / 65_400
    assert torch.tensor(share).bfloat16().item() != pytest.approx(share, rel=1e-3)
    x, weight, label = inputs()
    narrow_x, narrow_weight = narrowed(x, weight)
    whole, part = (
        gradients(smoothed_cross_entropy(narrow_x, narrow_weight, label, smoothing=0.1), narrow_x, scale=scale)[0]
        for scale in (1.0, share)
    )
    assert torch.equal(part, (whole.float() * share).bfloat16())


def test_in_bfloat16_the_product_is_narrow_and_nothing_after_it() -> None:
    """Logits multiplied in bfloat16, to be quick; softmax and sums in float32."""
    x, weight, label = inputs()
    narrow_x, narrow_weight = narrowed(x, weight)
    logits = (narrow_x @ narrow_weight.T).float()
    expected = functional.cross_entropy(logits, label, ignore_index=IGNORED, label_smoothing=0.1, reduction="sum")
    loss = smoothed_cross_entropy(narrow_x, narrow_weight, label, smoothing=0.1)
    assert loss.total.dtype == loss.surprise.dtype == torch.float32
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_gradient_of_a_narrow_weight_is_summed_in_float32_over_the_chunks() -> None:
    """In bfloat16 a sum would stop at 1024: what a chunk of five adds to it, 2.5, would be rounded away."""
    positions = 4000
    weight = torch.zeros(2, 1, dtype=torch.bfloat16, requires_grad=True)
    x = torch.ones(positions, 1, dtype=torch.bfloat16, requires_grad=True)
    loss = smoothed_cross_entropy(x, weight, torch.zeros(positions, dtype=torch.long), smoothing=0.0)
    _, weight_gradient = gradients(loss, x, weight)
    expected = torch.tensor([[-positions / 2], [positions / 2]])
    torch.testing.assert_close(weight_gradient.float(), expected, rtol=1e-2, atol=0)


def test_surprise_is_the_negative_log_likelihood_whatever_the_smoothing() -> None:
    x, weight, label = inputs()
    probability = (x @ weight.T).softmax(1)
    nats = -sum(math.log(probability[p, one].item()) for p, one in enumerate(label.tolist()) if one != IGNORED)
    for smoothing in (0.0, 0.1, 0.5):
        loss = smoothed_cross_entropy(x, weight, label, smoothing=smoothing)
        assert loss.surprise.item() == pytest.approx(nats, rel=1e-5)
        assert not loss.surprise.requires_grad


def test_losses_of_parts_add_up() -> None:
    x, weight, label = inputs()
    whole = smoothed_cross_entropy(x, weight, label, smoothing=0.1)
    first = smoothed_cross_entropy(x[:9], weight, label[:9], smoothing=0.1)
    second = smoothed_cross_entropy(x[9:], weight, label[9:], smoothing=0.1)
    torch.testing.assert_close(Loss(*(a + b for a, b in zip(first, second, strict=True))), whole)


ROWS, ROW_WIDTH = 4, 3


def read_twice() -> tuple[Tensor, Tensor, Tensor]:
    """Rows that follow one another in twos, with the same labels."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(ROWS, 2, ROW_WIDTH, WIDTH, generator=generator)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator)
    label = torch.randint(VOCABULARY, (ROWS, 1, ROW_WIDTH), generator=generator)
    label[1, :, 2] = label[3, :, 0] = IGNORED
    return x.requires_grad_(), weight.requires_grad_(), label.expand(-1, 2, -1)


def plain_agreement(x: Tensor, weight: Tensor, label: Tensor, smoothing: float, agreement: float) -> Loss:
    """R-Drop as its paper writes it, by the library's functions, and half of that."""
    losses = [
        plain_smoothed_cross_entropy(x[:, one].flatten(0, 1), weight, label[:, one].flatten(), smoothing=smoothing)
        for one in (0, 1)
    ]
    p, q = ((x[:, one] @ weight.T).log_softmax(-1)[label[:, one] != IGNORED] for one in (0, 1))
    divergences = [functional.kl_div(other, this, log_target=True, reduction="sum") for this, other in ((p, q), (q, p))]
    whole = losses[0].total + losses[1].total + agreement * (divergences[0] + divergences[1]) / 2
    return Loss(whole / 2, (losses[0].surprise + losses[1].surprise) / 2, losses[0].tokens)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("positions", [1, 13, 1000])
def test_two_readings_are_to_agree_as_the_paper_has_it(
    smoothing: float, positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of a chunk: one of less than a row's two readings, one of two rows, and one of all."""
    monkeypatch.setattr(module, "CHUNKS", module.CHUNKS._replace(positions=positions))
    x, weight, label = read_twice()
    ours = agreeing_cross_entropy(
        x.flatten(0, 2), weight, label.flatten(), smoothing=smoothing, agreement=5.0, width=ROW_WIDTH
    )
    plain = plain_agreement(x, weight, label, smoothing, 5.0)
    torch.testing.assert_close(ours, plain)
    assert ours.tokens == ROWS * ROW_WIDTH - 2
    torch.testing.assert_close(gradients(ours, x, weight), gradients(plain, x, weight), rtol=1e-5, atol=1e-5)


def test_readings_that_agree_are_read_once() -> None:
    x, weight, label = read_twice()
    same = x.detach()[:, :1].expand(-1, 2, -1, -1)
    ours = agreeing_cross_entropy(
        same.flatten(0, 2), weight, label.flatten(), smoothing=0.1, agreement=5.0, width=ROW_WIDTH
    )
    once = smoothed_cross_entropy(same[:, 0].flatten(0, 1), weight, label[:, 0].flatten(), smoothing=0.1)
    torch.testing.assert_close(ours, once)
