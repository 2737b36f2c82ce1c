"""The benchmark of single parts: both ways of each compute the same, and each gets a row of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import torch

from bench.kernels import Sizes, parts
from qkv.layers.dropout import Dropout
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
    assert len(set(seen)) == len(seen) == 9


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
    assert ran.returncode == 0, ran.stderr
    rows = [line.split(" | ") for line in ran.stdout.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 9
    assert all(float(row[1]) > 0 and row[2].endswith(" times") for row in rows)


def test_without_a_gpu_it_says_how_to_see_that_it_runs() -> None:
    ran = bench()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--device cpu" in ran.stderr
