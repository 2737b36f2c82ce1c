"""Learning that goes wrong goes on from before that, more slowly, and not for ever."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qkv.checkpoint import read, step_of
from qkv.errors import TrainingError
from qkv.run import RunDirectory
from qkv.training import train_prepared
from qkv.training.divergence import STEPS, Watch, place_to_go_on
from qkv.training.loop import Training
from tests import toy
from tests.toy import QUICK
from tests.training.crashing import interrupted
from tests.training.test_loop import with_bad_steps

DIVERGES = QUICK.with_changes(
    training={
        "steps": 240, "learning_rate": 1.0, "warmup_steps": 200, "save_every": 20, "keep_checkpoints": 9,
        "validate_every": 120, "report_every": 20, "validation_sentences": 0,
    }
)  # fmt: skip
"""Its learning rate rises until nothing that was learned is left, towards step 200."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def test_a_run_that_diverges_goes_back_and_ends_well_and_the_same_if_it_is_interrupted(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train_prepared(toy_data, tmp_path / "whole", DIVERGES)
    (rollback,) = toy.reports(tmp_path / "whole", "rollback")
    assert rollback["from_step"] > rollback["step"] + STEPS
    assert (rollback["rollback"], rollback["rate_factor"]) == (1, 0.5)
    assert (
        f": back to step {rollback['step']} with 0.5 of the learning rate (rollback 1 of 3)" in capsys.readouterr().err
    )
    reports = toy.reports(tmp_path / "whole", "train")
    assert [one["step"] for one in reports] == [*range(20, 241, 20)]
    assert max(one["loss"] for one in reports) < 6
    assert reports[-1]["learning_rate"] == 0.5
    assert read(tmp_path / "whole" / "final").state["settings"]["training.seed"] == QUICK.training.seed
    # Before it goes back, and after: there, a checkpoint knows of it or does not yet.
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", DIVERGES, before=rollback["from_step"] - 10)
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", DIVERGES, before=rollback["from_step"])
    interrupted(monkeypatch, toy_data, tmp_path / "resumed", DIVERGES, before=rollback["step"] + 10)
    train_prepared(toy_data, tmp_path / "resumed", DIVERGES)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "resumed"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "resumed")


def test_after_its_rollbacks_a_run_stops_and_says_why(tmp_path: Path, toy_data: Path) -> None:
    never = DIVERGES.with_changes(training={"rollbacks": 0})
    why = r"rose to (\d\.\d\d) after it had been down to (\d\.\d\d), seen at step (\d+)\. Try a small.*from step (\d+)"
    with pytest.raises(TrainingError, match=why) as stopped:
        train_prepared(toy_data, tmp_path / "run", never)
    told = re.search(why, str(stopped.value))
    assert told is not None
    rose, lowest, seen, saved = map(float, told.groups())
    assert rose > lowest + 2 and seen >= saved
    assert step_of(RunDirectory(tmp_path / "run").checkpoints()[-1]) == saved


def test_where_nobody_watches_a_run_diverges(tmp_path: Path, toy_data: Path) -> None:
    train_prepared(toy_data, tmp_path / "run", DIVERGES.with_changes(training={"tolerated_rise": None}))
    assert max(one["loss"] for one in toy.reports(tmp_path / "run", "train")) > 10


def test_steps_that_are_not_finite_go_back_to_before_them(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 7 to 9 are bad: the checkpoint of step 8, which was written among them, is not one to go on from."""
    with_bad_steps(monkeypatch, {7, 8, 9})
    train_prepared(toy_data, tmp_path / "run", QUICK)
    (rollback,) = toy.reports(tmp_path / "run", "rollback")
    assert (rollback["step"], rollback["from_step"], rollback["rate_factor"]) == (4, 9, 0.5)
    assert "3 steps in a row had a loss or gradient that is not finite" in rollback["reason"]
    assert toy.reports(tmp_path / "run", "train")[-1]["learning_rate"] == 0.005
    assert toy.reports(tmp_path / "run", "skipped") == []


def test_a_run_that_only_ever_stopped_goes_back_to_where_it_did(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not to the beginning: what was saved when it stopped is not lost."""
    config = QUICK.with_changes(training={"save_every": 100, "validate_every": 100})
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_to_stop", lambda training: training.step == 5)
        train_prepared(toy_data, tmp_path / "run", config, deadline=time.monotonic() + 1000)
    assert [step_of(one) for one in RunDirectory(tmp_path / "run").checkpoints()] == [5]
    # Steps 7 to 9, counted from where it goes on.
    with_bad_steps(monkeypatch, {2, 3, 4})
    train_prepared(toy_data, tmp_path / "run", config)
    (rollback,) = toy.reports(tmp_path / "run", "rollback")
    assert (rollback["step"], rollback["from_step"]) == (5, 9)


def test_without_a_checkpoint_a_run_begins_again_more_slowly_and_not_for_ever(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as bad:
        with_bad_steps(bad, {1, 2, 3})
        train_prepared(toy_data, tmp_path / "once", QUICK)
    assert toy.reports(tmp_path / "once")[0]["kind"] == "rollback"
    with_bad_steps(monkeypatch, {*range(1, 100)})
    with pytest.raises(TrainingError, match=r"not finite, the last one step 3 with .* after 3 rollbacks\. Try a small"):
        train_prepared(toy_data, tmp_path / "always", QUICK)
    factors = [one["rate_factor"] for one in toy.reports(tmp_path / "always", "rollback")]
    assert factors == [0.5, 0.25, 0.125]


def test_a_checkpoint_that_leads_to_nothing_but_trouble_is_given_up(tmp_path: Path, toy_data: Path) -> None:
    """The first step is finite and ruins the weights; what was saved after it is of no use at any learning rate."""
    ruined = QUICK.with_changes(training={"learning_rate": 1e12, "save_every": 1, "rollbacks": 0})
    sane = QUICK.with_changes(training={"save_every": 1, "rollbacks": 0})
    with pytest.raises(TrainingError, match="the same command goes on from step 1, the last one saved"):
        train_prepared(toy_data, tmp_path / "run", ruined)
    with pytest.raises(TrainingError, match="the same command goes on from the beginning"):
        train_prepared(toy_data, tmp_path / "run", sane)
    train_prepared(toy_data, tmp_path / "run", sane)
    assert toy.reports(tmp_path / "run", "skipped") == []
    assert read(tmp_path / "run" / "final").state["step"] == 12


def test_going_back_twice_to_the_same_trouble_goes_back_further(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 5 to 7 are bad twice: once after steps 1 to 4, and again right after the checkpoint of step 4. (The eighth
    step has been begun when the seventh is known to be bad.)"""
    with_bad_steps(monkeypatch, {5, 6, 7, 8, 9, 10, 11})
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"save_every": 2}))
    assert [(one["step"], one["rollback"]) for one in toy.reports(tmp_path / "run", "rollback")] == [(2, 2)]


def test_a_run_does_not_end_with_weights_that_cannot_be_validated(tmp_path: Path, toy_data: Path) -> None:
    ruined = QUICK.with_changes(
        training={"learning_rate": 1e12, "steps": 3, "save_every": 3, "validate_every": 3, "rollbacks": 0}
    )
    with pytest.raises(TrainingError, match="not finite"):
        train_prepared(toy_data, tmp_path / "run", ruined)
    assert not (tmp_path / "run" / "final").exists()
    at_once = ruined.with_changes(training={"steps": 1})
    with pytest.raises(TrainingError, match="the validation loss after step 1 is not finite"):
        train_prepared(toy_data, tmp_path / "other", at_once)
    assert RunDirectory(tmp_path / "other").checkpoints() == []


def noticed(losses: list[float], allowed: float = 2.0) -> tuple[int | None, int]:
    """The step at which something is wrong, and until when all was well."""
    watch = Watch()
    for step, loss in enumerate(losses, start=1):
        # Through its state, as if each step had been resumed.
        watch = Watch(watch.state())
        if watch.add(step, loss, allowed) is not None:
            return step, watch.good_until
    return None, watch.good_until


def test_a_lasting_rise_is_noticed_and_a_passing_one_is_not() -> None:
    falling = [9 - 5 * step / 300 for step in range(300)]
    assert noticed(falling) == (None, 300 - STEPS)
    assert noticed([*falling, *[20.0] * 25, *[4.0] * 300])[0] is None
    when, good_until = noticed([*falling, *[20.0] * 100])
    assert when is not None and 300 < when <= 300 + STEPS // 2 + 1
    assert 300 - STEPS <= good_until <= 300
    # As noisy as no batch of many sentences is.
    assert noticed([4.0 + (3.0 if step % 3 == 0 else 0.0) for step in range(900)])[0] is None


def test_a_slow_rise_is_good_until_it_is_half_as_high() -> None:
    when, good_until = noticed([*[4.0] * 100, *[4 + step / 100 for step in range(1000)]])
    assert when is not None and 300 < when < 340
    assert 100 < good_until < 200


def test_training_goes_on_from_the_newest_place_before_the_trouble() -> None:
    places = [Path(f"step-{step:07}") for step in (10, 20, 30)]
    assert place_to_go_on(places, 29) == places[1]
    assert place_to_go_on(places, 30) == places[2]
    assert place_to_go_on(places, 9) == places[0]
    assert place_to_go_on([], 9) is None
