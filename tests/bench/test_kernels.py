"""The benchmark of single parts: both ways of each compute the same, and each gets a row of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from bench import kernels
from bench.kernels import BASE, WIDEST_ROW, Part, Sizes, milliseconds, parts
from qkv.layers.dropout import Dropout
from tests.bench.refusing import refused
from tests.layers.gpu.conftest import device as device
from tests.layers.gpu.conftest import lanes_that_nobody_stores as lanes_that_nobody_stores
from tests.layers.gpu.twins import agree, results

SMALL = {"rows": 2, "width": 16, "vocabulary": 40}


def test_both_ways_of_every_part_make_the_same_of_what_they_are_given(device: torch.device) -> None:
    seen = []
    for part in parts(Sizes(**SMALL, device=device, precision=torch.float32)):
        for one in part.given:
            if isinstance(one, Dropout):
                one.eval()
        made = []
        for way in (part.plain, part.quick):
            # The loss writes its gradient over the logits; nothing else is asked for gradients of what it was given.
            given = part.given if part.learned else [one.clone() if torch.is_tensor(one) else one for one in part.given]
            outputs = way(*given)
            outputs = (outputs,) if torch.is_tensor(outputs) else outputs
            made.append(results(outputs, part.learned) if part.learned else outputs)
        agree(made[1], made[0], factor=10)
        # A graph of CUDA's holds what it has captured, and what made these was before.
        assert all(one.is_leaf for one in part.learned)
        seen.append(part.name)
    assert len(set(seen)) == len(seen) == 12


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.kernels", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )


def test_every_part_has_a_row_of_times(device: torch.device) -> None:
    del device
    sizes = [word for name, size in SMALL.items() for word in (f"--{name}", str(size))]
    ran = bench("--device", "cpu", "--uncompiled", *sizes)
    assert (ran.returncode, ran.stderr) == (0, "")
    rows = [line.split(" | ") for line in ran.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 12
    assert all(float(row[1]) > 0 and row[2].endswith(" times") for row in rows)


def test_nothing_is_measured_of_a_model_without_dropout(device: torch.device) -> None:
    given = [one for part in parts(Sizes(**SMALL, device=device, precision=torch.float32)) for one in part.given]
    dropouts = [one for one in given if isinstance(one, Dropout)]
    assert len(dropouts) == 3
    assert all(one.now == BASE.dropout > 0 for one in dropouts)


class Doubled(torch.autograd.Function):
    """Tells how often it was gone through in either direction."""

    forwards = backwards = 0

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        Doubled.forwards += 1
        return 2 * x

    @staticmethod
    def backward(_: Any, *gradients: Tensor) -> Tensor:
        Doubled.backwards += 1
        return 2 * gradients[0]


def test_a_call_is_measured_with_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doubled, "forwards", 0)
    monkeypatch.setattr(Doubled, "backwards", 0)
    clock = iter(range(0, 100, 5))
    monkeypatch.setattr("bench.kernels.time.perf_counter", lambda: next(clock) / 1000)
    x = torch.ones(3, requires_grad=True)
    part = Part("doubling", Doubled.apply, torch.neg, (x,), (x,))
    assert milliseconds(part, part.quick, torch.device("cpu")) == pytest.approx(5)
    assert Doubled.forwards == Doubled.backwards == 3


def test_a_row_has_ours_first_and_how_often_it_fits_into_the_others(
    device: torch.device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del device
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(kernels, "milliseconds", lambda part, way, _: 2.0 if way is part.quick else 3.0)
    sizes = [word for name, size in SMALL.items() for word in (f"--{name}", str(size))]
    monkeypatch.setattr("sys.argv", ["bench", "--device", "cpu", "--uncompiled", *sizes])
    assert kernels.main() == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.endswith("| |")]
    assert len(rows) == 12
    assert all(row.endswith("| 2.000 | 3.000, 1.50 times | |") for row in rows)


def test_gradients_lie_as_what_they_are_of() -> None:
    parts_of_one = torch.split(torch.randn(2, 3, 8), [6, 2], dim=-1)
    first, second, other = kernels._gradients_of([*parts_of_one, torch.randn(4)])
    assert first.stride() == parts_of_one[0].stride() and first.shape == parts_of_one[0].shape
    assert (
        second.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() != other.untyped_storage().data_ptr()
    )
    assert second.storage_offset() == parts_of_one[1].storage_offset() == 6
    assert other.shape == (4,)


def test_the_widest_row_is_that_of_our_attention(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    del device
    from qkv.layers.gpu.attention import WIDEST

    assert WIDEST_ROW == WIDEST
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    refused(kernels.main, f"--device cpu --width {WIDEST + 1}", monkeypatch)


def test_any_width_has_rows_that_are_read_twice(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = Sizes(rows=5, width=24, vocabulary=40, device=device, precision=torch.float32)
    monkeypatch.setattr("bench.kernels.loss.GPU_POSITIONS", 100)
    names = [part.name for part in parts(sizes)]
    assert names[-2:] == ["loss and its gradient, 100 positions", "the same of rows read twice, 96 positions"]
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    refused(kernels.main, "--device cpu --rows 1 --width 16", monkeypatch)


def test_only_gradients_that_one_attention_makes_lie_together(device: torch.device) -> None:
    found = {part.name: part for part in parts(Sizes(**SMALL, device=device, precision=torch.float32))}
    assert found["queries, keys and values"].together
    assert not found["keys and values of all layers"].together


def test_on_a_cpu_it_asks_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    refused(kernels.main, "--device cpu", monkeypatch)


def test_without_a_gpu_it_says_how_to_see_that_it_runs() -> None:
    ran = bench()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--device cpu" in ran.stderr
