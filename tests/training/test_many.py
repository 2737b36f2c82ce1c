"""Several processes train as one does."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from qkv import checkpoint
from qkv.checkpoint import RunDirectory
from qkv.config import Config
from qkv.training import train_prepared
from tests import toy
from tests.toy import QUICK
from tests.training.many import ROOT, arguments, said_by, start, together

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


def changing(data: Path, run: Path, ways: list[str | None]) -> None:
    """Trains to the end in stages of equal length, each in one process (None) or in two (how they share the work)."""
    for number, way in enumerate(ways, start=1):
        config = STILL.with_changes(training={"steps": 20 * number // len(ways), "parallel": way or "auto"})
        if way is None:
            train_prepared(data, run, config)
        else:
            together(data, run, config)


def test_the_number_of_processes_may_change_on_the_way(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    changing(toy_data, tmp_path / "run", [None, "ddp", None])
    assert losses(tmp_path / "run")[7:] == approximately(losses(alone)[7:])
    apart = [(one - toy.weights(alone)[name]).norm() for name, one in toy.weights(tmp_path / "run").items()]
    assert max(apart) < 1e-2


def test_the_way_to_share_the_work_may_change_too(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    changing(toy_data, tmp_path / "run", [None, "fsdp", "ddp", "fsdp", None])
    assert losses(tmp_path / "run") == approximately(losses(alone))


def faulty(
    fault: str, step: int, data: Path, run: Path, config: Config, *, options: tuple[str, ...] = ()
) -> tuple[int, str]:
    """How training ended in which the second process has this fault at this step, and what was said."""
    command = [str(ROOT / "tests/training/faulty.py"), fault, str(step), *arguments(data, run, config)]
    with start(command, options=options) as process:
        said = said_by(process)
    return process.returncode, said


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_a_step_that_is_not_finite_in_one_process_is_left_out_by_all(tmp_path: Path, toy_data: Path, way: str) -> None:
    config = STILL.with_changes(training={"steps": 8, "parallel": way})
    code, said = faulty("no number", 3, toy_data, tmp_path / "run", config)
    assert code == 0, said
    assert [report["step"] for report in toy.reports(tmp_path / "run", "skipped")] == [3]
    assert said.count("step 3 left out") == 1
    assert [report["step"] for report in toy.reports(tmp_path / "run", "train")] == [1, 2, 4, 5, 6, 7, 8]
    assert "1 steps were left out" in said


def test_a_lost_process_is_started_again_and_the_run_ends_the_same(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    code, said = faulty("lost", 8, toy_data, tmp_path / "run", STILL, options=("--max-restarts=1",))
    assert code == 0, said
    assert "going on after step 5" in said
    assert losses(tmp_path / "run") == approximately(losses(alone))


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_a_run_that_lost_a_process_is_that_which_did_not_to_the_last_bit(
    tmp_path: Path, toy_data: Path, way: str
) -> None:
    config = STILL.with_changes(model={"dropout": 0.2}, training={"steps": 12, "parallel": way})
    together(toy_data, tmp_path / "whole", config)
    code, said = faulty("lost", 8, toy_data, tmp_path / "lost", config, options=("--max-restarts=1",))
    assert code == 0, said
    assert toy.reports(tmp_path / "lost") == toy.reports(tmp_path / "whole")
    assert toy.equal(toy.weights(tmp_path / "lost"), toy.weights(tmp_path / "whole"))


def test_a_signal_to_one_process_stops_all_after_the_same_step(tmp_path: Path, toy_data: Path, alone: Path) -> None:
    config = STILL.with_changes(training={"save_every": 20})
    code, said = faulty("asked", 4, toy_data, tmp_path / "run", config)
    # torchrun has an exit code of its own, and tells those of its processes.
    assert code == 1
    assert {*re.findall(r"rank *: ([01]).*\n *exitcode *: (-?\d+)", said)} == {("0", "143"), ("1", "143")}, said
    assert said.count("qkv: stopped by a signal to another process after step 5, which is saved") == 1
    assert [path.name for path in RunDirectory(tmp_path / "run").checkpoints()] == ["step-0000005"]
    train_prepared(toy_data, tmp_path / "run", config)
    assert losses(tmp_path / "run") == approximately(losses(alone))


def test_what_goes_wrong_in_one_process_ends_all_and_is_told_once(tmp_path: Path, toy_data: Path) -> None:
    code, said = faulty("refused", 3, toy_data, tmp_path / "run", STILL)
    assert code == 1
    assert said.count("qkv: error: ") == said.count("qkv: error: this process refuses\n") == 1


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_two_processes_learn_in_bfloat16_too(tmp_path: Path, toy_data: Path, alone: Path, way: str) -> None:
    together(toy_data, tmp_path / "run", STILL.with_changes(training={"parallel": way, "precision": "bfloat16"}))
    assert losses(tmp_path / "run") == pytest.approx(losses(alone), rel=0.02)
    # What is kept is exact, whatever is computed with.
    saved = checkpoint.read(RunDirectory(tmp_path / "run").checkpoints()[-1])
    assert {tensor.dtype for group in saved.tensors.values() for tensor in group.values()} == {torch.float32}


def test_a_signal_to_torchrun_stops_all_after_the_same_step(tmp_path: Path, toy_data: Path) -> None:
    config = STILL.with_changes(training={"steps": 100_000, "save_every": 100_000, "validate_every": 100_000})
    with start(["-m", "qkv", *arguments(toy_data, tmp_path / "run", config)]) as process:
        while not (tmp_path / "run" / "log.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        said = said_by(process)
    assert process.returncode == 1
    steps = re.findall(r"qkv: stopped by SIGTERM after step ([0-9,]+), which is saved", said)
    assert len(steps) == 1
    assert [path.name for path in RunDirectory(tmp_path / "run").checkpoints()] == [
        f"step-{int(steps[0].replace(',', '')):07}"
    ]
