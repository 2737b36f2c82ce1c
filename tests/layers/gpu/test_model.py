"""A model of GPU parts, against the plain one: loss and the gradient of every weight."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from qkv.layers.attention import MultiHeadAttention
from qkv.layers.dropout import Dropout
from qkv.layers.kernels import fused
from qkv.models.build import assemble, use_gpu_parts
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.objective import Goal, translation_loss
from tests.layers.gpu.twins import agree
from tests.models.families import FAMILIES, VOCABULARY, batch_of, randomised, some_rows


@pytest.fixture(autouse=True)
def larger_pieces(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes its time for each program, however large."""
    from qkv.layers.gpu import residual

    del device
    for kernel in (residual.FORWARD, residual.BACKWARD):
        monkeypatch.setitem(kernel, "ROWS", 16)


def quick_and_plain(family: str, device: torch.device) -> tuple[EncoderDecoder, EncoderDecoder]:
    """At a size where heads fit a tile."""
    config = dataclasses.replace(FAMILIES[family], width=32, heads=2)
    plain = randomised(config).to(device)
    quick = copy.deepcopy(plain)
    use_gpu_parts(quick)
    return quick, plain


def with_next_to_no_dropout(model: EncoderDecoder) -> EncoderDecoder:
    """It leaves out nothing, but is there."""
    model.inputs.dropout = Dropout(1e-30)
    return model


def loss_and_gradients(model: EncoderDecoder, agreement: float = 0.0) -> list[Tensor]:
    batch = batch_of(some_rows()[:2]).to(model.inputs.weight_VD.device)
    loss = translation_loss(model, batch, Goal(0.1, agreement))
    mean = loss.total / batch.target_tokens
    return [mean.detach(), *torch.autograd.grad(mean, list(model.parameters()))]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_gpu_parts_learns_the_same(device: torch.device, family: str) -> None:
    quick, plain = quick_and_plain(family, device)
    agree(loss_and_gradients(quick), loss_and_gradients(plain))


def test_two_readings_teach_a_model_of_gpu_parts_the_same(device: torch.device) -> None:
    """Where nothing is left out they agree, and are learned from as one."""
    quick, plain = quick_and_plain("modern", device)
    agree(loss_and_gradients(with_next_to_no_dropout(quick), agreement=5.0), loss_and_gradients(plain))


@pytest.mark.parametrize("family", ["paper", "pre-norm", "modern"])
def test_in_bfloat16_it_is_as_exact_as_the_plain_model_in_bfloat16(device: torch.device, family: str) -> None:
    quick, plain = quick_and_plain(family, device)
    if device.type == "cpu":
        # The interpreter has no products in bfloat16.
        for part in quick.modules():
            if isinstance(part, MultiHeadAttention):
                part.kernel = fused
    quick.bfloat16()
    plain.bfloat16()
    ours, theirs = loss_and_gradients(quick), loss_and_gradients(plain)
    exact = loss_and_gradients(plain.float())
    assert ours[0].item() == pytest.approx(exact[0].item(), rel=0.01)
    for one, other, right in zip(ours, theirs, exact, strict=True):
        assert (one - right).norm() < 1.3 * (other - right).norm() + 0.01 * right.norm() + 1e-3


@pytest.mark.parametrize("family", ["modern"])
@pytest.mark.usefixtures("checked_shapes")
def test_shapes_tell_the_truth(device: torch.device, family: str) -> None:
    quick, _ = quick_and_plain(family, device)
    loss_and_gradients(quick)


def test_a_model_of_gpu_parts_reads_on_where_it_stopped(device: torch.device) -> None:
    """As validation translates with it: rows that are one sentence, with a past."""
    quick, plain = quick_and_plain("paper", device)
    batch = batch_of(some_rows()).to(device)
    logits = []
    with torch.no_grad():
        for model in (quick, plain):
            source, target = (side._replace(segments_RW=None) for side in (batch.source, batch.target))
            _, state = model.step(
                target._replace(ids_RW=target.ids_RW[:, :4], positions_RW=target.positions_RW[:, :4]),
                model.start(source),
            )
            one, _ = model.step(
                target._replace(ids_RW=target.ids_RW[:, 4:5], positions_RW=target.positions_RW[:, 4:5]), state
            )
            logits.append(one)
    agree([logits[0]], [logits[1]])


def functions_of(model: EncoderDecoder) -> dict[str, Callable[..., Any]]:
    """Those that its parts hold and may have swapped, by name: `encoder.project`."""
    return {
        f"{name}.{way}": function
        for name, part in model.named_modules()
        for way, function in vars(part).items()
        if inspect.isfunction(function)
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_is_swapped_for_its_twin(device: torch.device, family: str) -> None:
    """One that stays plain is as right, and only slower: nothing else would tell."""
    from qkv.layers.gpu import loss

    quick, plain = quick_and_plain(family, device)
    functions = functions_of(quick)
    assert functions.keys() == functions_of(plain).keys()
    names = {name.rpartition(".")[2] for name in functions}
    assert names == {"embed", "project", "turned", "kernel", "join", "network"}
    assert [name for name, one in functions.items() if not one.__module__.startswith("qkv.layers.gpu.")] == []
    assert quick.loss_chunks is loss.CHUNKS


def test_using_gpu_parts_changes_no_weight(device: torch.device) -> None:
    quick, plain = quick_and_plain("modern", device)
    assert all(torch.equal(one, plain.state_dict()[name]) for name, one in quick.state_dict().items())
    assert quick.state_dict().keys() == assemble(FAMILIES["modern"], VOCABULARY).state_dict().keys()
