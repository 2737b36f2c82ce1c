"""Several processes train as one does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qkv import checkpoint
from qkv.checkpoint import RunDirectory
from qkv.training import train_prepared
from tests import toy
from tests.toy import QUICK
from tests.training.many import together

STILL = QUICK.with_changes(
    model={"dropout": 0.0},
    training={
        "steps": 20,
        "report_every": 1,
        "clip": 1.0,
        "save_every": 5,
        "final": "moving",
        "tokens_per_batch": 288,
        "validate_every": 10,
    },
)
"""Without dropout, which every process draws for itself, the number of processes changes nothing but rounding."""
FLOAT32 = 1e-5


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, toy_data: Path) -> Path:
    """What one process makes of it."""
    run = tmp_path_factory.mktemp("alone") / "run"
    with toy.one_thread():
        train_prepared(toy_data, run, STILL)
    return run


def losses(run: Path, kind: str = "train") -> list[float]:
    return [report["loss"] for report in toy.reports(run, kind)]


def approximately(values: list[float]) -> object:
    return pytest.approx(values, rel=FLOAT32)


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_two_processes_learn_what_one_does(tmp_path: Path, toy_data: Path, alone: Path, way: str) -> None:
    said = together(toy_data, tmp_path / "run", STILL.with_changes(training={"parallel": way, "accumulate": 2}))
    assert losses(tmp_path / "run") == approximately(losses(alone))
    assert len(losses(alone)) == 20
    assert losses(tmp_path / "run", "validation") == approximately(losses(alone, "validation"))
    norms = [[report["gradient_norm"] for report in toy.reports(run, "train")] for run in (tmp_path / "run", alone)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    # Only one of them speaks.
    assert said.count("finished after step 20") == 1
    # What is written is the same, whatever wrote it: all names, shapes and numbers.
    ours, theirs = (checkpoint.read(RunDirectory(run).checkpoints()[-1]) for run in (tmp_path / "run", alone))
    assert {group: [*tensors] for group, tensors in ours.tensors.items()}.keys() == theirs.tensors.keys()
    for group, tensors in theirs.tensors.items():
        assert tensors.keys() == ours.tensors[group].keys()
        for name, tensor in tensors.items():
            assert ours.tensors[group][name].shape == tensor.shape, name
    apart = [
        (ours.tensors["weights"][name] - one).norm() / one.norm() for name, one in theirs.tensors["weights"].items()
    ]
    assert max(apart) < 1e-3
    assert ours.state.keys() == theirs.state.keys()
