"""What many GPUs are expected to do follows from what one did."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scale import INFINIBAND, MEASURED, NVLINK, WAYS, Measured, expected, half, table

BASE, BIG = MEASURED


def test_one_gpu_exchanges_nothing_and_does_what_was_measured() -> None:
    assert half(1e9, 1) == 0
    step = expected(BIG, "ddp", 1)
    assert step.exchange == 0
    assert step.apart == step.overlap == BIG.seconds
    # Of source and target together, as it was measured.
    assert step.tokens_per_second(BIG, 1) == pytest.approx(757_653, rel=1e-3)


def test_bytes_go_through_the_slowest_wire_of_each_kind_once() -> None:
    assert half(8e9, 8) == pytest.approx(7e9 / NVLINK)
    assert half(8e9, 16) == pytest.approx(7e9 / NVLINK + 0.5e9 / INFINIBAND)


def test_parameters_are_those_of_the_recipes() -> None:
    assert BASE.parameters == pytest.approx(63e6, rel=0.02)
    assert BIG.parameters == pytest.approx(214e6, rel=0.02)
    assert BASE.embeddings < BASE.gathered_first < BASE.parameters


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("one", MEASURED)
def test_more_gpus_do_more_but_never_more_than_so_many_times_as_much(way: str, one: Measured) -> None:
    speeds = {gpus: expected(one, way, gpus).tokens_per_second(one, gpus) for gpus in (1, 8, 64, 512)}
    for few, many in ((1, 8), (8, 64), (64, 512)):
        assert speeds[few] < speeds[many] < speeds[few] * many / few
    step = expected(one, way, 64)
    assert one.seconds < step.overlap < step.apart


def test_the_page_shows_what_is_computed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    assert table() in page
