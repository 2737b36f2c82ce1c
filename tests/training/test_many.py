"""Several processes train as one does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from qkv import checkpoint
from qkv.prepare import Prepared
from qkv.run import RunDirectory
from qkv.training import train_prepared
from qkv.training.footprint import Footprint
from tests import toy
from tests.torture.several import ended, faulty
from tests.toy import QUICK
from tests.training.many import together, torchrun

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
    config = STILL.with_changes(training={"parallel": way, "accumulate": 2})
    said = together(toy_data, tmp_path / "run", config, by=torchrun)
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


def test_muon_moves_matrices_in_parts_as_it_moves_whole_ones(tmp_path: Path, toy_data: Path) -> None:
    """Three processes: the rows of no matrix can be divided evenly among them."""
    config = STILL.with_changes(training={"steps": 8, "optimizer": "muon", "weight_decay": 0.1, "parallel": "fsdp"})
    train_prepared(toy_data, tmp_path / "alone", config)
    together(toy_data, tmp_path / "run", config, processes=3)
    assert losses(tmp_path / "run") == approximately(losses(tmp_path / "alone"))
    saved = [checkpoint.read(RunDirectory(tmp_path / run).checkpoints()[-1]).tensors for run in ("run", "alone")]
    for group, tensors in saved[1].items():
        for name, tensor in tensors.items():
            torch.testing.assert_close(saved[0][group][name], tensor, rtol=1e-3, atol=1e-4)


def test_a_signal_to_one_process_stops_all_after_the_same_step(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    config = STILL.with_changes(training={"save_every": 20})
    code, said = faulty(toy_data, tmp_path / "run", config, "asked", steps="4")
    # torchrun has an exit code of its own, and tells those of its processes.
    assert code == 1
    assert ended(said) == [(0, "143"), (1, "143")], said
    assert said.count("qkv: stopped by a signal to another process after step 5, which is saved") == 1
    assert [path.name for path in RunDirectory(tmp_path / "run").checkpoints()] == ["step-0000005"]
    train_prepared(toy_data, tmp_path / "run", config)
    assert losses(tmp_path / "run") == approximately(losses(alone))


def test_a_validation_that_a_signal_cuts_short_is_left_by_all(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    config = STILL.with_changes(training={"save_every": 20})
    _, said = faulty(toy_data, tmp_path / "run", config, "asked", rank=0, steps="10")
    assert ended(said) == [(0, "143"), (1, "143")], said
    assert said.count("qkv: stopped by SIGTERM after step 10, which is saved") == 1
    assert losses(tmp_path / "run", "validation") == []
    train_prepared(toy_data, tmp_path / "run", config)
    assert losses(tmp_path / "run", "validation") == approximately(losses(alone, "validation"))


def test_what_goes_wrong_in_one_process_ends_all_and_is_told_once(tmp_path: Path, toy_data: Path) -> None:
    code, said = faulty(toy_data, tmp_path / "run", STILL, "refused", steps="3")
    assert code == 1
    assert said.count("qkv: error: ") == said.count("qkv: error: this process refuses\n") == 1


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_two_processes_learn_in_bfloat16_too(tmp_path: Path, toy_data: Path, alone: Path, way: str) -> None:
    together(toy_data, tmp_path / "run", STILL.with_changes(training={"parallel": way, "precision": "bfloat16"}))
    assert losses(tmp_path / "run") == pytest.approx(losses(alone), rel=0.02)
    # What is kept is exact, whatever is computed with.
    saved = checkpoint.read(RunDirectory(tmp_path / "run").checkpoints()[-1])
    assert {tensor.dtype for group in saved.tensors.values() for tensor in group.values()} == {torch.float32}


def test_the_batch_of_several_is_what_fits_the_least_of_them(tmp_path: Path, toy_data: Path) -> None:
    """Each counts on its part of what this machine has; the second has less."""
    config = STILL.with_changes(training={"steps": 4, "tokens_per_batch": "auto"})
    code, said = faulty(toy_data, tmp_path / "run", config, "little memory")
    assert code == 0, said
    tokens = RunDirectory(tmp_path / "run").config().training.tokens_per_batch
    assert said.count(f"training.tokens_per_batch is {tokens:,}, which is ") == 1
    footprint = Footprint.of(Prepared.open(toy_data).applied_to(config), processes=2)
    rows = (0.6 * 8_500_000 - footprint.fixed - footprint.checkpoint) // footprint.row
    assert tokens == 2 * rows * 32
    # The same command goes on with it, in one process too.
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"steps": 6}))
    assert RunDirectory(tmp_path / "run").config().training.tokens_per_batch == tokens
