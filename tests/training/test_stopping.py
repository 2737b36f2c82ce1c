"""A run that is stopped is saved, says how to go on, and ends as if it had never stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qkv.checkpoint import read_state, step_of
from qkv.cli import main
from qkv.errors import NoTimeError, QkvError, Stopped
from qkv.run import RunDirectory
from qkv.training import stopping as stopping_module
from qkv.training import train_prepared
from qkv.training.loop import Training
from qkv.training.stopping import SIGNAL, TIME_IS_UP, Stopping, in_time
from qkv.training.validation import Validation
from tests import toy
from tests.toy import QUICK, Command

LONG = {"training.steps": 4000, "training.save_every": 1000, "training.validate_every": 1000}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with toy.one_thread():
        yield


def stop_during(monkeypatch: pytest.MonkeyPatch, steps: dict[int, signal.Signals]) -> None:
    """Sends this process a signal while it takes these steps, each of them once."""
    sound = Training.update

    def update(training: Training, batch: object) -> None:
        sound(training, batch)  # type: ignore[arg-type]
        number = steps.pop(training.step, None)
        if number is not None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Training, "update", update)


@pytest.mark.parametrize(
    ("final", "number"), [("last", signal.SIGINT), ("checkpoints", signal.SIGTERM), ("moving", signal.SIGTERM)]
)
def test_a_stopped_run_ends_as_if_it_had_not_been(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, final: str, number: signal.Signals
) -> None:
    """Not even the mean of the last checkpoints shows that there were more of them."""
    config = QUICK.with_changes(
        model={"dropout": 0.3},
        training={"final": final, "moving_average": 0.5, "keep_checkpoints": 2, "average_checkpoints": 3},
    )
    train_prepared(toy_data, tmp_path / "whole", config)
    stop_during(monkeypatch, dict.fromkeys((1, 5, 6, 8, 11), number))
    for step in (1, 5, 6, 8, 11):
        with pytest.raises(Stopped, match=rf"{number.name} after step {step}, which is saved; the same") as stopped:
            train_prepared(toy_data, tmp_path / "stopped", config)
        assert stopped.value.exit_code == 128 + number
        assert step_of(RunDirectory(tmp_path / "stopped").checkpoints()[-1]) == step
        # Of the stops before, nothing is told any more.
        assert toy.reports(tmp_path / "stopped", "stopped") == [
            {"kind": "stopped", "step": step, "why": str(stopped.value)}
        ]
    train_prepared(toy_data, tmp_path / "stopped", config)
    assert toy.equal(toy.weights(tmp_path / "whole"), toy.weights(tmp_path / "stopped"))
    assert toy.reports(tmp_path / "whole") == toy.reports(tmp_path / "stopped")
    kept = [[one.name for one in RunDirectory(tmp_path / run).checkpoints()] for run in ("whole", "stopped")]
    assert kept[0] == kept[1]


def test_a_signal_does_not_wait_for_a_validation(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which may take longer than whoever sent it waits; it is done when the run goes on, after the last step too."""
    sound = Validation._quality

    def signalled(*given: Any) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGTERM)
        return sound(*given)

    monkeypatch.setattr(Validation, "_quality", signalled)
    for step in (6, 12):
        for _ in range(2):
            with pytest.raises(Stopped, match=f"SIGTERM after step {step}, which is saved"):
                train_prepared(toy_data, tmp_path / "run", QUICK)
            assert "validation after" not in capsys.readouterr().err
        monkeypatch.setattr(Validation, "_quality", sound)
        train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"steps": step}))
        assert f"validation after step {step}" in capsys.readouterr().err
        monkeypatch.setattr(Validation, "_quality", signalled)
    assert [report["step"] for report in toy.reports(tmp_path / "run", "validation")] == [6, 12]


def test_signals_are_as_before_when_training_is_over(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    stop_during(monkeypatch, {2: signal.SIGTERM})
    with pytest.raises(Stopped):
        train_prepared(toy_data, tmp_path / "run", QUICK)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        stopping = Stopping()
        with stopping.listening():
            os.kill(os.getpid(), signal.SIGINT)
            assert not stopping.asked(still_to_do=())
    finally:
        signal.signal(signal.SIGINT, before)


# The command itself


def arguments(corpus: Path, run: Path, *more: str) -> list[str]:
    settings = {
        "model.width": 16, "model.heads": 2, "model.hidden": 24, "text.vocabulary": 320, "training.final": "last",
        "training.schedule": "constant",
        "training.device": "cpu", "training.tokens_per_batch": 160, "data.row_width": 32,
        "training.validation_sentences": 2, **LONG,
    }  # fmt: skip
    changes = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return ["train", str(corpus), "--recipe", "tiny", "--output", str(run), *changes, *more]


def started(corpus: Path, run: Path, *more: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "qkv", *arguments(corpus, run, "--set", "training.report_every=1", *more)],
        stderr=stderr,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def wait_for(process: subprocess.Popen[str], pattern: str) -> None:
    """Returns when the process has said this."""
    assert process.stderr is not None
    for line in process.stderr:
        if re.match(pattern, line):
            return
    raise AssertionError(f"it ended with {process.wait()} before it said {pattern!r}")


def test_a_terminal_that_is_closed_loses_nothing(tmp_path: Path) -> None:
    """It sends SIGHUP, and takes nothing that is written to it any more."""
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    ours, its = os.openpty()
    # Tests that nohup began ignore the signal, and so would every process that they start.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = started(corpus, tmp_path / "run", stderr=its)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        os.close(its)
        while b"step " not in os.read(ours, 1 << 16):
            pass
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 129
    assert RunDirectory(tmp_path / "run").newest_sound_checkpoint() is not None


def test_told_to_end_the_command_saves_says_how_to_go_on_and_ends_with_143(tmp_path: Path) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    with started(corpus, tmp_path / "run") as process:
        wait_for(process, "step 5 of")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 143
    (checkpoint,) = RunDirectory(tmp_path / "run").checkpoints()
    assert told.splitlines()[-1] == (
        f"qkv: stopped by SIGTERM after step {step_of(checkpoint)}, which is saved; the same command goes on"
    )
    assert "Traceback" not in told


def test_a_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    """In the middle of a step that takes seconds, so that the first one cannot have been obeyed yet."""
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    large = {
        "model.width": 128, "model.heads": 4, "model.hidden": 1024, "training.tokens_per_batch": 16_000,
        "training.report_every": 1,
    }  # fmt: skip
    changes = [part for name, value in large.items() for part in ("--set", f"{name}={value}")]
    with started(corpus, tmp_path / "run", *changes) as process:
        wait_for(process, "step 1 of")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        wait_for(process, "qkv: stopping after this step")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "qkv: left at once; the same command goes on after the last checkpoint"
    assert not RunDirectory(tmp_path / "run").learned


def test_with_max_time_a_run_stops_in_time_and_goes_on(tmp_path: Path, command: Command) -> None:
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(120))
    begun = time.monotonic()
    ran = command(*arguments(corpus, tmp_path / "run", "--max-time", "6s"))
    assert (ran.code, time.monotonic() - begun < 10) == (75, True)
    told = re.search(r"stopped after step ([\d,]+), which is saved, .* before its time was up; the same", ran.err)
    assert told
    steps = int(told[1].replace(",", ""))
    assert 10 < steps < 4000
    assert step_of(RunDirectory(tmp_path / "run").checkpoints()[-1]) == steps
    assert not (tmp_path / "run" / "final").exists()
    on = command(*arguments(corpus, tmp_path / "run", "--set", f"training.steps={steps + 3}"))
    assert (on.code, f"going on after step {steps:,}" in on.err) == (0, True)
    whole = command(*arguments(corpus, tmp_path / "whole", "--set", f"training.steps={steps + 3}"))
    assert whole.code == 0
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "whole"))


def test_time_that_is_up_while_text_is_prepared_ends_that(tmp_path: Path, command: Command) -> None:
    """With the code of what the same command would not mend: it would begin to prepare again."""
    corpus = toy.write_tsv(tmp_path / "corpus.tsv", toy.pairs(30_000))
    ran = command(*arguments(corpus, tmp_path / "run", "--max-time", "0.5s"))
    assert (ran.code, "time was up while the text was being prepared" in ran.err) == (4, True)
    assert {path.name for path in tmp_path.rglob("*")} <= {"corpus.tsv", "run"}
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


class Forgotten:
    """What a weak reference can be to."""


def waits(seconds: float) -> None:
    """In Python, which is where an alarm is heard."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize("after", [0.0, 5.0])
def test_time_that_is_up_while_something_is_finalized_is_not_lost(after: float) -> None:
    """Python passes over errors there; whether there is more to do then or not, the work ends."""
    begun, too_late = time.monotonic(), QkvError("too late")
    with pytest.raises(QkvError) as told, in_time(begun + 0.05, too_late):
        one = Forgotten()
        reference = weakref.ref(one, lambda _: waits(0.1))
        del one
        assert reference() is None
        waits(after)
    assert told.value is too_late
    assert time.monotonic() - begun < 4
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_is_cleared_up_when_time_is_up_is_not_interrupted() -> None:
    cleared = False
    with pytest.raises(QkvError, match="too late"), in_time(time.monotonic() + 0.05, QkvError("too late")):
        try:
            waits(5.0)
        finally:
            waits(3 * stopping_module._RING_AGAIN)
            cleared = True
    assert cleared


def test_no_time_at_all_is_told(tmp_path: Path, toy_data: Path) -> None:
    """As an error: whoever gave the same command again and again would wait for ever."""
    with pytest.raises(
        NoTimeError, match="time was up before the first step, and nothing was learned in it; give more"
    ):
        train_prepared(toy_data, tmp_path / "run", QUICK, deadline=time.monotonic())
    assert not RunDirectory(tmp_path / "run").learned
    train_prepared(toy_data, tmp_path / "run", QUICK.with_changes(training={"steps": 3}))
    with pytest.raises(NoTimeError, match="up after step 3, which is saved, and nothing") as told:
        train_prepared(toy_data, tmp_path / "run", QUICK, deadline=time.monotonic())
    assert told.value.exit_code == 4
    # Unless something else was done, such as preparing.
    assert not train_prepared(toy_data, tmp_path / "run", QUICK, deadline=time.monotonic(), got_on=True)


def test_time_for_one_more_step_and_what_comes_after_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(stopping_module, "time", SimpleNamespace(monotonic=lambda: now))

    def stops(deadline: float, *still_to_do: str) -> bool:
        stopping = Stopping(now + deadline)
        for seconds in (1.0, 9.0, 2.0):
            stopping.took("step", seconds)
        stopping.took("save", 20.0)
        stopping.took("save", 10.0)
        stopping.took("validation", 100.0)
        return stopping.asked(still_to_do=("step", *still_to_do)) > 0

    # Half as much again as the longest of each: 1.5 * (9 + 20 + 100).
    assert stops(43, "save") and not stops(44, "save")
    assert stops(193, "validation", "save") and not stops(195, "validation", "save")


def test_a_signal_to_one_process_outweighs_the_clocks_of_all() -> None:
    stopping = Stopping(time.monotonic(), got_on=True)
    assert "before its time was up" in stopping.explain(5, 3 * TIME_IS_UP)
    with pytest.raises(Stopped, match="stopped by a signal to another process after step 5, which is saved"):
        stopping.explain(5, 3 * TIME_IS_UP + SIGNAL)


def test_a_slow_step_long_ago_is_forgotten() -> None:
    stopping = Stopping(time.monotonic() + 60)
    stopping.took("step", 100.0)
    assert stopping.asked(still_to_do=("step",))
    for _ in range(100):
        stopping.took("step", 0.1)
    assert not stopping.asked(still_to_do=("step",))


@pytest.mark.parametrize("text", ["25", "m", "-5m", "1d", "1:30", "", "1e3s", "5 m"])
def test_a_time_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "corpus.tsv", f"--max-time={text}"])
    assert ended.value.code == 2
    assert "is not a time such as 90s, 25m or 2h" in capsys.readouterr().err


def test_what_was_learned_is_saved_before_a_validation_that_nobody_knows_the_time_of(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should it take too long, nothing is lost; once its time is known, it is reckoned with."""
    saved: list[list[int]] = []
    run, sound = RunDirectory(tmp_path / "run"), Validation.run

    def looked_at(*given: Any, **options: Any) -> dict[str, Any] | None:
        saved.append([step_of(one) for one in run.checkpoints()])
        return sound(*given, **options)

    monkeypatch.setattr(Validation, "run", looked_at)
    config = QUICK.with_changes(training={"validate_every": 3, "save_every": 100, "keep_checkpoints": 1})
    assert train_prepared(toy_data, run.path, config, deadline=time.monotonic() + 1000)
    assert saved[0] == [3]
    train_prepared(toy_data, tmp_path / "plain", config)
    assert toy.equal(toy.weights(run.path), toy.weights(tmp_path / "plain"))


class Lost(Exception):  # noqa: N818 - nothing is wrong with it
    """The process is gone."""


@pytest.mark.parametrize("timed", [False, True])
def test_a_run_that_is_lost_while_it_validates_validates_again(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch, timed: bool
) -> None:
    """Also where it was saved before that."""
    sound = Validation.run

    def lost(*_: Any, **__: Any) -> dict[str, Any]:
        raise Lost

    config = QUICK.with_changes(training={"validate_every": 3, "save_every": 100})
    for _ in range(2):
        monkeypatch.setattr(Validation, "run", lost)
        with pytest.raises(Lost):
            train_prepared(toy_data, tmp_path / "run", config, deadline=time.monotonic() + 1000 if timed else None)
    monkeypatch.setattr(Validation, "run", sound)
    train_prepared(toy_data, tmp_path / "run", config)
    train_prepared(toy_data, tmp_path / "plain", config)
    assert toy.reports(tmp_path / "run") == toy.reports(tmp_path / "plain")
    assert toy.equal(toy.weights(tmp_path / "run"), toy.weights(tmp_path / "plain"))


def test_a_best_validation_is_ended_with_though_it_was_saved_in_passing_first(
    tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a time limit, the first validation finds its step saved already."""
    runs = {}
    for name, deadline in (("plain", None), ("timed", time.monotonic() + 1000)):
        losses = iter([1.0, 2.0, 3.0, 4.0])
        monkeypatch.setattr(
            Validation, "run", lambda *_, coming=losses, **__: {"loss": next(coming), "nll": 1.0, "perplexity": 2.0}
        )
        config = QUICK.with_changes(training={"validate_every": 3, "save_every": 4, "patience": 2})
        train_prepared(toy_data, tmp_path / name, config, deadline=deadline)
        runs[name] = read_state(RunDirectory(tmp_path / name).final)["weights_of_step"]
    assert runs == {"plain": 3, "timed": 3}
