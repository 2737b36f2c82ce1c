"""Loss and gradient of the logits in one pass, against the plain ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import torch

from qkv.layers.loss import IGNORED, smoothed_cross_entropy
from qkv.layers.loss import loss_and_gradient as plain
from qkv.layers.loss import loss_and_gradient_of_two_readings as plain_of_two
from tests.layers.gpu.twins import agree, exact, in_both_precisions, numbers
from tests.layers.plain_loss import plain_smoothed_cross_entropy

POSITIONS = 7


@in_both_precisions
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("vocabulary", "block"), [(17, 4096), (32, 4096), (17, 8), (24, 8), (3, 8), (37_000, 4096)])
def test_loss_and_gradient_are_the_plain_ones(
    device: torch.device,
    precision: torch.dtype,
    smoothing: float,
    vocabulary: int,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A vocabulary smaller than a block, of whole blocks, and of blocks of which the last is not full."""
    from qkv.layers.gpu import loss

    monkeypatch.setattr(loss, "BLOCK", block)
    logits = (8 * numbers(POSITIONS, vocabulary, seed=1, device=device)).detach().to(precision)
    label = torch.randint(vocabulary, (POSITIONS,), generator=torch.Generator().manual_seed(2)).to(device)
    label[2] = label[5] = IGNORED
    total, surprise, gradient = plain(logits.float(), label, smoothing)
    ours = loss.loss_and_gradient(logits, label, smoothing)
    agree(ours[:2], [total, surprise])
    assert ours[2].data_ptr() == logits.data_ptr()
    agree([ours[2]], [gradient])
    assert not ours[2][2].any() and not ours[2][5].any()


def test_the_logits_of_two_positions_may_lie_apart(device: torch.device) -> None:
    from qkv.layers.gpu import loss

    room = numbers(POSITIONS, 32, seed=1, device=device).detach()
    logits, label = room[:, :17], torch.arange(POSITIONS, device=device)
    beside = room[:, 17:].clone()
    expected = plain(logits.clone(), label, 0.1)
    agree(loss.loss_and_gradient(logits, label, 0.1), expected)
    assert torch.equal(room[:, 17:], beside)


def test_logits_that_a_float_could_not_raise_e_to_the_power_of_are_no_trouble(device: torch.device) -> None:
    from qkv.layers.gpu import loss

    logits = torch.tensor([[1000.0, -1000.0, 990.0], [-3000.0, -3000.0, -3001.0]], device=device)
    label = torch.tensor([2, 0], device=device)
    expected = plain(logits.clone(), label, 0.1)
    # A float as large as the logits is only so exact.
    agree(loss.loss_and_gradient(logits, label, 0.1), expected, factor=30)


@pytest.mark.parametrize("place", [3, 11, 20])
def test_one_logit_may_be_far_above_all_others_in_whichever_block(
    device: torch.device, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qkv.layers.gpu import loss

    monkeypatch.setattr(loss, "BLOCK", 8)
    logits = numbers(2, 24, seed=1, device=device).detach()
    logits[:, place] = 300.0
    label = torch.tensor([place, 1], device=device)
    expected = plain(logits.clone(), label, 0.1)
    agree(loss.loss_and_gradient(logits, label, 0.1), expected, factor=10)


@in_both_precisions
@pytest.mark.parametrize(("vocabulary", "block"), [(17, 4096), (17, 8), (24, 8), (9000, 4096)])
def test_two_readings_are_compared_as_the_plain_part_does_it(
    device: torch.device, precision: torch.dtype, vocabulary: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qkv.layers.gpu import loss

    monkeypatch.setattr(loss, "BLOCK", block)
    rows, width = 3, 5
    room = (3 * numbers(rows * 2 * width, vocabulary + 8, seed=1, device=device)).detach().to(precision)
    logits, beside = room[:, :vocabulary], room[:, vocabulary:].clone()
    label = torch.randint(vocabulary, (rows, 1, width), generator=torch.Generator().manual_seed(2)).to(device)
    label[0, :, 3] = label[2, :, 0] = IGNORED
    label = label.expand(-1, 2, -1).flatten()
    expected = plain_of_two(logits.float(), label, 0.1, 5.0, width)
    ours = loss.loss_and_gradient_of_two_readings(logits, label, 0.1, 5.0, width)
    agree(ours[:2], expected[:2])
    agree([ours[2]], [expected[2]])
    assert ours[2].data_ptr() == logits.data_ptr()
    assert not ours[2][label == IGNORED].any()
    assert torch.equal(room[:, vocabulary:], beside)


@in_both_precisions
def test_a_loss_of_several_chunks_is_the_plain_one(device: torch.device, precision: torch.dtype) -> None:
    """Each chunk adds to both sums and to the gradient of the output layer; the last chunk is shorter."""
    from qkv.layers.gpu import loss

    positions, width, vocabulary = 20, 64, 4500
    x = numbers(positions, width, seed=1, device=device, precision=precision)
    weight = (numbers(vocabulary, width, seed=2, device=device) / width**0.5).detach().to(precision).requires_grad_()
    # Every chunk has words that no other has, so that each has places of its own in the gradient of the weight.
    label = torch.arange(positions, device=device) * 200
    label[3] = label[9] = IGNORED
    chunks = loss.CHUNKS._replace(positions=8)
    ours = smoothed_cross_entropy(x, weight, label, smoothing=0.1, chunks=chunks)
    plain_x, plain_weight = exact([x, weight])
    theirs = plain_smoothed_cross_entropy(plain_x, plain_weight, label, smoothing=0.1)
    torch.testing.assert_close(ours, theirs, rtol=1e-5 if precision == torch.float32 else 2**-8, atol=0)
    agree(
        torch.autograd.grad(ours.total, [x, weight]),
        torch.autograd.grad(theirs.total, [plain_x, plain_weight]),
    )


def test_gradients_in_bfloat16_are_scaled_by_a_number_that_bfloat16_has_not(device: torch.device) -> None:
    """On a GPU as elsewhere, though it rounds scalars in its own way."""
    from qkv.layers.gpu import loss

    x, weight = (numbers(9, 8, seed=seed, device=device, precision=torch.bfloat16) for seed in (1, 2))
    label = torch.arange(9, device=device)
    whole, part = (
        torch.autograd.grad(
            smoothed_cross_entropy(x, weight, label, smoothing=0.1, chunks=loss.CHUNKS).total * scale, x
        )[0]
        for scale in (1.0, 1 / 65_400)
    )
    assert torch.equal(part, (whole.float() * (1 / 65_400)).bfloat16())


_READING = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from qkv.layers.gpu.layout import in_pieces
from qkv.layers.gpu.loss import _loss_and_gradient as kernel

_, piece = in_pieces(int(sys.argv[1]))
types = {"logits": "*bf16", "label": "*i64", "total": "*fp32", "surprise": "*fp32", "smoothing": "fp32"}
fixed = {"PIECE": piece, "PASSED_OVER": -100, "BLOCK": 4096}
names = kernel.arg_names
source = ASTSource(
    kernel,
    {name: "constexpr" if name in fixed else types.get(name, "i32") for name in names},
    {(names.index(name),): value for name, value in fixed.items()},
    {(names.index(name),): [["tt.divisibility", 16]] for name in ("logits", "stride")},
)
print(compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm["ptx"])
"""


@pytest.mark.parametrize("vocabulary", [8_000, 37_000])
def test_logits_are_read_and_written_sixteen_bytes_at_a_time(vocabulary: int) -> None:
    """Though 16 does not divide 37,000: one by one they took more than twice the time, and nothing else told."""
    pytest.importorskip("triton")
    # Here kernels may be interpreted; there one is compiled, which needs no GPU.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    compiled = subprocess.run(
        [sys.executable, "-c", _READING, str(vocabulary)], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "ld.global.v4.b32" in compiled
    assert "st.global.v4.b32" in compiled
    # One number by itself is read, the label's logit, and none is written.
    assert len(re.findall(r"ld\.global\.b16", compiled)) == 1
    assert "st.global.b16" not in compiled
