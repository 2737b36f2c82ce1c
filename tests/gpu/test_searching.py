"""The search that is a graph of a GPU's own kernels, against the plain search on the same GPU."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from qkv.engines.gpu.search import GpuSearch
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.hypothesis import paper_penalty
from tests.engines.test_gpu_search import plainly, same, some_limits, some_sources, that_ends_at_times
from tests.models.families import FAMILIES, randomised

WIDTH, ALPHA = 4, 0.6


def on(gpu: torch.device, family: str) -> EncoderDecoder:
    return that_ends_at_times(family).to(gpu)


@pytest.mark.parametrize("family", FAMILIES)
def test_captured_it_finds_what_the_plain_search_finds(gpu: torch.device, family: str) -> None:
    model, sources = on(gpu, family), some_sources(60)
    limits, penalty = some_limits(sources), paper_penalty(ALPHA)
    ours = GpuSearch(model).find(sources, limits, width=WIDTH, penalty=penalty, keep=2)
    same(ours, plainly(model, sources, limits, WIDTH, penalty, 2))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [1, WIDTH])
def test_captured_and_not_it_finds_the_same(gpu: torch.device, precision: torch.dtype, width: int) -> None:
    """To the last bit: a graph does what its kernels did."""
    model, sources = on(gpu, "paper"), some_sources(200)
    limits, penalty = some_limits(sources), paper_penalty(ALPHA)
    captured, plain = (
        GpuSearch(model, precision=precision, captured=captured).find(sources, limits, width=width, penalty=penalty)
        for captured in (True, False)
    )
    assert captured == plain


def test_in_bfloat16_scores_are_nearly_those_of_float32(gpu: torch.device) -> None:
    model = randomised(dataclasses.replace(FAMILIES["paper"], width=64, heads=4)).to(gpu)
    sources = some_sources(50)
    limits, penalty = some_limits(sources), paper_penalty(ALPHA)
    exact, quick = (
        GpuSearch(model, precision=precision).find(sources, limits, width=WIDTH, penalty=penalty)
        for precision in (torch.float32, torch.bfloat16)
    )
    assert [one[0].score for one in quick] == pytest.approx([one[0].score for one in exact], rel=0.05)
