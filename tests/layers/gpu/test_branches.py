"""Attention along the branches of a tree, against its plain twin."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from qkv.layers import branches
from qkv.layers.branches import Slots
from tests.layers.gpu.twins import agree, in_all_precisions, needs_products, numbers

N, H, T = 3, 2, 40


def drawn(*shape: int, seed: int, device: torch.device, precision: torch.dtype) -> Tensor:
    return numbers(*shape, seed=seed, device=device, precision=precision).detach()


def slots(count: int, E: int, U: int, device: torch.device, precision: torch.dtype) -> Slots:
    """As a table has them: layers lie between a sentence and its slots."""
    key = drawn(N, 2, count, H, E, seed=4, device=device, precision=precision)
    value = drawn(N, 2, count, H, U, seed=5, device=device, precision=precision)
    return Slots(key[:, 1], value[:, 1])


def copied(some: Slots) -> Slots:
    return Slots(some.key_NSHE.clone(), some.value_NSHU.clone())


def exact(some: Slots) -> Slots:
    return Slots(some.key_NSHE.float(), some.value_NSHU.float())


@in_all_precisions
@pytest.mark.parametrize(("B", "E", "U"), [(1, 16, 32), (4, 32, 16), (3, 6, 10), (4, 64, 64)])
def test_it_looks_back_as_its_twin_does(device: torch.device, precision: torch.dtype, B: int, E: int, U: int) -> None:
    from qkv.layers.gpu.branches import look_back

    needs_products(device, precision)
    generator = torch.Generator().manual_seed(1)
    lane_NBT = torch.randint(B, (N, B, T), generator=generator, dtype=torch.int32).to(device)
    written_N = torch.tensor([0, 5, T - 1], device=device)
    lane_NBT[torch.arange(N), :, written_N] = torch.arange(B, dtype=torch.int32, device=device)
    # Queries, keys and values as they come from one product: a row has all three.
    together = drawn(N, B, H, 2 * E + U, seed=3, device=device, precision=precision)
    query, key, value = together[..., :E], together[..., E : 2 * E], together[..., 2 * E :]
    past = slots(T * B, E, U, device, precision)
    own, plain = copied(past), exact(past)
    mixed = look_back(query, key, value, own, lane_NBT, written_N)
    expected = branches.look_back(query.float(), key.float(), value.float(), plain, lane_NBT, written_N)
    agree([mixed], [expected])
    for ours, theirs in zip(own, plain, strict=True):
        assert torch.equal(ours.float(), theirs)


@in_all_precisions
@pytest.mark.parametrize(("B", "E", "U"), [(1, 16, 32), (4, 32, 16), (3, 6, 10), (70, 16, 16), (4, 64, 64)])
def test_it_looks_across_as_its_twin_does(device: torch.device, precision: torch.dtype, B: int, E: int, U: int) -> None:
    from qkv.layers.gpu.branches import look_across

    needs_products(device, precision)
    query = drawn(N, B, H, E, seed=3, device=device, precision=precision)
    memory = slots(100, E, U, device, precision)
    length_N = torch.tensor([1, 64, 100], device=device)
    mixed = look_across(query, memory, length_N)
    agree([mixed], [branches.look_across(query.float(), exact(memory), length_N)])
