"""Schedules that fit a length, and plans that are kept."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from qkv.errors import ConfigError, TextError
from qkv.prepare import Prepared
from qkv.recipes import recipe
from qkv.reproduce import plan
from qkv.reproduce.budget import shortened, steps_in_time
from qkv.reproduce.plan import Length, planned
from qkv.training.optimizer import learning_rate
from qkv.training.speed import steps_a_second
from qkv.training.step import Step
from tests import toy
from tests.toy import QUICK


@pytest.mark.parametrize("steps", [1, 3, 100, 1600, 12_000, 100_000])
@pytest.mark.parametrize("name", ["base", "modern"])
def test_a_shorter_run_peaks_as_high_as_the_recipe_and_not_later_than_a_quarter(name: str, steps: int) -> None:
    config = recipe(name)
    short = shortened(config, steps)
    assert short.training.steps == steps
    assert short.training.warmup_steps <= max(1, steps // 4)
    peaks = [
        max(learning_rate(one.training, one.model.width, step) for step in range(1, one.training.warmup_steps + 2))
        for one in (config, short)
    ]
    if steps > 3:
        assert math.isclose(peaks[0], peaks[1], rel_tol=0.02)
    for every in (short.training.save_every, short.training.validate_every, short.training.report_every):
        assert 1 <= every <= steps
    assert (short.model, short.text, short.data, short.search) == (
        config.model,
        config.text,
        config.data,
        config.search,
    )


def test_a_run_of_the_recipes_length_has_the_recipes_warmup() -> None:
    short, base = shortened(recipe("base"), 100_000).training, recipe("base").training
    assert (short.warmup_steps, short.learning_rate, short.save_every) == (4000, 1.0, base.save_every)


def test_the_speed_of_training_is_measured(toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = Prepared.open(toy_data)
    with toy.one_thread():
        assert steps_in_time(QUICK, prepared, 5.0) > 5
        sound = Step.begin

        def slow(step: Step, *given: Any, **named: Any) -> Any:
            time.sleep(0.1)
            return sound(step, *given, **named)

        monkeypatch.setattr(Step, "begin", slow)
        # As quick as its steps are, and no quicker.
        assert 0.5 < steps_a_second(QUICK, prepared, 0.5) < 10
    with pytest.raises(ConfigError, match=r"a step takes longer than the 1e-06 s of the budget"):
        steps_in_time(QUICK, prepared, 1e-6)


def test_a_plan_is_made_once(toy_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = Prepared.open(toy_data)
    with toy.one_thread():
        first = planned(tmp_path / "a", QUICK, Length(seconds=5.0), prepared, {"training.warmup_steps": "7"})
    assert first.training.warmup_steps == 7
    # However fast the machine is now, which nobody asks.
    with monkeypatch.context() as patch:
        patch.setattr(plan, "steps_in_time", None)
        assert planned(tmp_path / "a", QUICK, Length(seconds=5.0), prepared, {}) == first
    for config, length in (
        (QUICK, Length(seconds=6.0)),
        (recipe("tiny"), Length(seconds=5.0)),
        (QUICK, Length(steps=5)),
    ):
        with pytest.raises(ConfigError, match="was begun with other settings, another budget or other data"):
            planned(tmp_path / "a", config, length, prepared, {})
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "plan.json").write_text("{")
    with pytest.raises(TextError, match=r"plan\.json is damaged"):
        planned(tmp_path / "b", QUICK, Length(seconds=5.0), prepared, {})


def test_a_length_is_one_thing() -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        Length(1.0, 1)
    with pytest.raises(ConfigError, match="1 or more"):
        Length(steps=0)
    with pytest.raises(ConfigError, match="of no time"):
        Length(seconds=0.0)
