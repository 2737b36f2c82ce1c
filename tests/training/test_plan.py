"""A plan's sizes are those of the run it foretells."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv.prepare import Prepared
from qkv.recipes import recipe
from qkv.run import RunDirectory
from qkv.training import train_prepared
from qkv.training.plan import Plan
from tests.toy import QUICK


def memory(*, rows: int, accumulate: int = 1) -> int:
    config = QUICK.with_changes(training={"tokens_per_batch": 32 * rows, "accumulate": accumulate})
    return Plan.of(config, data_disk=0).memory


def test_every_row_that_is_computed_at_once_takes_the_same_memory() -> None:
    assert memory(rows=30) - memory(rows=20) == memory(rows=20) - memory(rows=10) > 0
    assert memory(rows=20, accumulate=2) == memory(rows=10)


@pytest.mark.parametrize(("final", "schedule"), [("last", "constant"), ("moving", "constant"), ("last", "free")])
def test_the_disk_is_what_the_checkpoints_take_and_one_more_while_it_is_written(
    tmp_path: Path, toy_data: Path, final: str, schedule: str
) -> None:
    config = (
        Prepared.open(toy_data)
        .applied_to(QUICK)
        .with_changes(
            model={"hidden": 2000},
            training={
                "final": final,
                "schedule": schedule,
                "moving_average": 0.1,
                "keep_checkpoints": 2,
                "average_checkpoints": 1,
                "steps": 16,
                "validate_every": 4,
                "learning_rate": 5.0,
                "warmup_steps": 40,
            },
        )
    )
    train_prepared(toy_data, tmp_path / "run", config)
    run = RunDirectory(tmp_path / "run")
    *_, newest = run.checkpoints()
    # Learning goes wrong soon, so that the best is none of the last two.
    assert len(run.checkpoints()) == 3
    files = [*(tmp_path / "run" / "checkpoints").rglob("*.*"), *run.final.iterdir(), *newest.iterdir()]
    assert Plan.of(config, data_disk=0).checkpoint_disk == pytest.approx(
        sum(path.stat().st_size for path in files), rel=0.03
    )


@pytest.mark.parametrize(("name", "positions", "measured"), [("base", 65_536, 14.8e9), ("big", 32_768, 17.7e9)])
def test_in_bfloat16_memory_is_what_an_h200_was_seen_to_use(name: str, positions: int, measured: float) -> None:
    config = recipe(name).with_changes(
        text={"vocabulary": 37_000},
        training={"tokens_per_batch": positions, "precision": "bfloat16"},
    )
    assert Plan.of(config, data_disk=0).memory == pytest.approx(measured, rel=0.03)
