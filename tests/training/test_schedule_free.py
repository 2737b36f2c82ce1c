"""Learning without a schedule, against the paper's algorithm written out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from qkv import checkpoint
from qkv.config import TrainingConfig
from qkv.errors import ConfigError
from qkv.run import RunDirectory
from qkv.training import train_prepared
from qkv.training.averaging import copied
from qkv.training.schedule_free import ScheduleFree
from tests import toy
from tests.models.test_contract import share_reversed, to_reverse, two_a_row
from tests.toy import QUICK
from tests.training.crashing import interrupted
from tests.training.many import together
from tests.training.steps import batch, stepping

FREE = QUICK.with_changes(
    model={"dropout": 0.2},
    training={"schedule": "free", "optimizer": "adamw", "weight_decay": 0.1, "warmup_steps": 4, "clip": 1.0},
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


@pytest.mark.parametrize("warmup_steps", [1, 4])
def test_a_step_weighs_as_much_in_the_mean_as_the_square_of_its_rate(warmup_steps: int) -> None:
    ours = ScheduleFree({}, beta=0.9, warmup_steps=warmup_steps)
    squares: list[float] = []
    for step in range(1, 12):
        squares.append(min(1, step / warmup_steps) ** 2)
        assert ours.share_at(step) == pytest.approx(squares[-1] / sum(squares))


def test_steps_are_those_of_the_papers_algorithm() -> None:
    """Algorithm 1 with Adam's second moment, its correction as Adam has it; a gradient that depends on where it is."""
    rate, beta1, beta2, epsilon, decay, warmup_steps = 0.1, 0.9, 0.98, 1e-8, 0.05, 3
    ours = stepping(
        schedule="free", optimizer="adamw", learning_rate=rate, warmup_steps=warmup_steps, weight_decay=decay,
        beta1=beta1, beta2=beta2, epsilon=epsilon,
    )  # fmt: skip
    x, z = copied(ours.weights.exact), copied(ours.weights.exact)
    v = {name: torch.zeros_like(one) for name, one in x.items()}
    squares = 0.0
    for t in range(1, 7):
        y = {name: (1 - beta1) * z[name] + beta1 * x[name] for name in x}
        for name, weight in ours.weights.exact.items():
            torch.testing.assert_close(weight.detach(), y[name], rtol=1e-5, atol=1e-5)
        ours.take(batch(t), t)
        gamma = rate * min(1, t / warmup_steps)
        squares += gamma**2
        for name, one in ours.weights.exact.items():
            assert one.grad is not None
            v[name] = beta2 * v[name] + (1 - beta2) * one.grad**2
            matrix = one.ndim >= 2
            z[name] = z[name] * (1 - gamma * decay * matrix) - gamma * one.grad / (
                (v[name] / (1 - beta2**t)).sqrt() + epsilon
            )
            x[name] = (1 - gamma**2 / squares) * x[name] + gamma**2 / squares * z[name]
    for name, mean in ours.averaging.mean.items():
        torch.testing.assert_close(mean, x[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("before", [3, 7])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, before: int
) -> None:
    config = FREE.with_changes(training={"optimizer": optimizer})
    train_prepared(toy_data, tmp_path / "whole", config)
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", config, before)
    train_prepared(toy_data, tmp_path / "resumed", config)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_a_run_is_saved_and_ends_with_the_mean_and_keeps_the_other_weights(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", FREE)
    last = checkpoint.read(RunDirectory(tmp_path / "run").checkpoints()[-1]).tensors
    assert last.keys() == {"weights", "fast", "optimizer"}
    assert last["weights"].keys() == last["fast"].keys()
    assert not toy.equal(last["weights"], last["fast"])
    assert toy.equal(toy.weights(tmp_path / "run"), last["weights"])


def test_processes_with_a_part_of_the_weights_each_do_the_same(tmp_path: Path, toy_data: Path) -> None:
    config = FREE.with_changes(
        model={"dropout": 0.0}, training={"parallel": "fsdp", "steps": 6, "report_every": 1, "save_every": 3}
    )
    train_prepared(toy_data, tmp_path / "alone", config)
    train_prepared(toy_data, tmp_path / "run", config.with_changes(training={"steps": 3}))
    together(toy_data, tmp_path / "run", config)
    ours, theirs = (checkpoint.read(RunDirectory(tmp_path / run).checkpoints()[-1]).tensors for run in ("run", "alone"))
    for file, tensors in theirs.items():
        for name, tensor in tensors.items():
            torch.testing.assert_close(ours[file][name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("optimizer", "rate"), [("adamw", 0.01), ("muon", 0.02)])
def test_it_learns_to_reverse(optimizer: str, rate: float) -> None:
    ours = stepping(schedule="free", optimizer=optimizer, warmup_steps=20, learning_rate=rate)
    for number in range(1, 201):
        assert ours.take(two_a_row(to_reverse(40, seed=number)), number).finite
    with ours.weights.replaced_by(ours.averaging.mean):
        assert share_reversed(ours.model.eval(), to_reverse(50, seed=0)) > 0.9


def test_two_means_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"schedule=free keeps a mean of its own; set training\.final to last"):
        TrainingConfig(schedule="free", final="moving")
