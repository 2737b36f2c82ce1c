"""Training in stretches on another machine ends as it would have ended in one, wherever a stretch was cut short."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from qkv.prepare import prepare
from qkv.training import train_prepared
from tests import toy
from tests.for_scripts import qkv_for_scripts
from tests.toy import QUICK

Ran = subprocess.CompletedProcess[str]

STRETCH = Path(__file__).parent.parent / "tools" / "stretch"

SETTINGS = {
    "model.width": 16, "model.heads": 2, "model.hidden": 24, "model.encoder_layers": 1, "model.decoder_layers": 2,
    "model.residual": "pre", "training.tokens_per_batch": 160, "training.schedule": "constant",
    "training.learning_rate": 1e-2, "training.warmup_steps": 3, "training.final": "last", "training.save_every": 4,
    "training.validate_every": 6, "training.validation_sentences": 2, "training.report_every": 3,
    "training.device": "cpu",
}  # fmt: skip
"""QUICK's, as the command line takes them."""

LOST = 'case $1 in */home/.) exit 12; esac; cp -r "$@"'
"""What copies to the other machine, and nothing back."""


class Machines(NamedTuple):
    """This machine, and another that is a directory of this one."""

    here: Path
    qkv: str

    @property
    def run(self) -> Path:
        return self.here / "run"

    @property
    def step(self) -> int:
        """The newest that the run here has."""
        return max(int(path.name.removeprefix("step-")) for path in (self.run / "checkpoints").iterdir())

    def stretch(self, steps: int, *, data: str = "data", run: str = "run", **way: str) -> str:
        """What one stretch says that goes well."""
        ran = self.try_stretch(steps, data=data, run=run, **way)
        assert ran.returncode == 0, ran.stderr
        return ran.stderr

    def try_stretch(self, steps: int, *, data: str = "data", run: str = "run", **way: str) -> Ran:
        """One stretch, with other ways to go where some are given, such as `copy="false"`."""
        settings = {**SETTINGS, "training.steps": steps}
        return self.call(
            data, run, *(word for one in settings.items() for word in ("--set", "=".join(map(str, one)))), **way
        )

    def call(self, data: str, run: str, *arguments: str, **way: str) -> Ran:
        ways = {"shell": "bash -c", "copy": "cp -r", "place": "", "part": "0.02", "directory": str(self.here / "there")}
        ways |= {"qkv": self.qkv, "qkv_here": self.qkv, **way}
        variables = {f"STRETCH_{name.upper()}": value for name, value in ways.items()}
        command = [str(STRETCH), "nowhere", data, run, "10m", *arguments]
        return subprocess.run(
            command, cwd=self.here, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )

    def script(self, text: str) -> str:
        """A command that does something else than the usual one."""
        path = self.here / "script"
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and other data, and a run on each that was never stopped."""
    folder = tmp_path_factory.mktemp("made")
    config = QUICK.with_changes(text={"directions": "en-de,de-en", "vocabulary": 340})
    for name, seed in (("data", 1), ("other", 2)):
        prepare([toy.write_tsv(folder / f"{name}.en-de.tsv", toy.pairs(150, seed))], folder / name, config)
        with toy.one_thread():
            train_prepared(folder / name, folder / f"{name}-whole", config)
    return folder


@pytest.fixture
def machines(made: Path, tmp_path: Path) -> Iterator[Machines]:
    for name in ("data", "other"):
        shutil.copytree(made / name, tmp_path / name)
    (tmp_path / "told").mkdir()
    with qkv_for_scripts(tmp_path / "told") as qkv:
        yield Machines(tmp_path, qkv)


def equal(run: Path, other: Path) -> bool:
    return toy.equal(toy.weights(run), toy.weights(other))


def test_stretches_elsewhere_are_one_run(machines: Machines, made: Path) -> None:
    greets = machines.script('echo "welcome to $HOSTNAME"; exec bash -c "$1"')
    # However little comes home: there it goes on from all that it has.
    machines.stretch(3, shell=greets, what="weights", precision="bfloat16")
    assert f"sending {machines.run}" not in machines.stretch(7, shell=greets)
    # The last one on a machine that has nothing of the two before.
    machines.stretch(12, directory=str(machines.here / "third"))
    assert (machines.here / "run.before").is_dir()
    assert equal(machines.run, made / "data-whole")


def test_two_runs_on_one_machine_stay_apart(machines: Machines, made: Path) -> None:
    for data in ("data", "other"):
        # All have the same name.
        machines.stretch(12, data=data, run=f"{data}-runs/run")
    for data in ("data", "other"):
        assert equal(machines.here / f"{data}-runs" / "run", made / f"{data}-whole")


def test_data_that_was_prepared_anew_is_sent_anew(machines: Machines, made: Path) -> None:
    machines.stretch(3)
    shutil.rmtree(machines.here / "data")
    (machines.here / "other").rename(machines.here / "data")
    refused = machines.try_stretch(12)
    assert (refused.returncode, "use the data this run was begun with" in refused.stderr) == (3, True)
    machines.stretch(12, run="another", directory=str(machines.here / "third"))
    assert equal(machines.here / "another", made / "other-whole")


def test_what_did_not_come_home_comes_first(machines: Machines, made: Path) -> None:
    machines.stretch(3)
    failed = machines.try_stretch(7, copy=machines.script(LOST))
    assert (failed.returncode, machines.step) == (12, 3)
    assert "stopped while bringing the run home (exit code 12); the same command goes on" in failed.stderr
    # Whatever becomes of the next stretch.
    assert machines.call("data", "run", "--recipe", "none of them").returncode == 2
    assert machines.step == 7
    machines.stretch(12)
    assert equal(machines.run, made / "data-whole")


def test_what_came_home_takes_its_place_even_if_the_machine_is_gone(machines: Machines) -> None:
    machines.stretch(3)
    # As where a run has prepared its data itself; it does not travel with the run.
    (machines.here / "data").rename(machines.run / "data")
    # Killed where the run of before has left its place and what came home is not there yet.
    kill = machines.here / "kill"
    kill.write_text(
        """[[ $0 != */stretch ]] || { set -T; trap '[[ $BASH_COMMAND != mv*new*run* ]] || kill -9 $$' DEBUG; }"""
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASH_ENV", str(kill))
        assert machines.try_stretch(7, data="run/data").returncode == -signal.SIGKILL
    assert not machines.run.exists()
    shutil.rmtree(machines.here / "there")
    assert machines.call("run/data", "run", "--recipe", "none of them").returncode == 2
    assert machines.step == 7


def test_what_was_learned_here_meanwhile_is_not_written_over(machines: Machines, made: Path) -> None:
    assert machines.try_stretch(3, copy=machines.script(LOST)).returncode == 12
    shutil.copytree(made / "data-whole", machines.run)
    warned = machines.stretch(12)
    assert equal(machines.run, made / "data-whole")
    (stray,) = machines.here.glob("run.stray-*")
    assert f"what came home is in {stray} instead" in warned
    assert f"sending {machines.run}" in warned
    assert (stray / "checkpoints" / "step-0000003").is_dir()


def test_a_run_that_was_removed_here_begins_again(machines: Machines) -> None:
    machines.stretch(7)
    shutil.rmtree(machines.run)
    (there,) = (machines.here / "there").glob("run-*/run/lock")
    here = machines.here / "run.stretch" / "lock"
    # Not where somebody is still at work.
    for lock, told in ((there, "an earlier stretch is still training there"), (here, "another stretch of")):
        with lock.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            refused = machines.try_stretch(3)
            assert (refused.returncode, told in refused.stderr) == (2, True)
    machines.stretch(3)
    assert machines.step == 3


def test_where_the_other_machine_lost_the_run_it_is_sent_again(machines: Machines) -> None:
    machines.stretch(7)
    (run,) = (machines.here / "there").glob("run-*/run")
    shutil.rmtree(run)
    assert "run is finished" in machines.stretch(7)


def test_a_place_that_cannot_be_had_is_not_taken_for_an_empty_one(machines: Machines) -> None:
    refused = machines.try_stretch(3, directory=str(machines.here / "data" / "prepared.json"))
    assert refused.returncode == 1
    assert "stopped while looking what nowhere has (exit code 1)" in refused.stderr


def test_training_is_given_just_what_was_said(machines: Machines) -> None:
    told = machines.script(f'[ "$1" = train ] || exec {machines.qkv} "$@"; printf "[%s]" "${{@:6}}"; exit 9')
    for more in ((), ("--set", "training.device=it's a $HOME")):
        ran = machines.call("data", "run", *more, qkv=told)
        assert (ran.returncode, ran.stdout) == (9, "".join(f"[{word}]" for word in ("--max-time", "10m", *more)))
        assert "training has saved nothing there" in ran.stderr


@pytest.mark.parametrize("wrong", [("--recipe", "fats"), ("--set", "training.stepz=3"), ("--set", "text.vocabulary=9")])
def test_what_training_would_refuse_is_told_before_data_is_sent(machines: Machines, wrong: tuple[str, str]) -> None:
    refused = machines.call("data", "run", *wrong)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == "stretch: error: training would end with this; nothing was sent"
    assert not [*machines.here.rglob("data-*")]


@pytest.mark.parametrize(
    "given",
    [
        ("--adapt", "a/run/there"),
        ("--set", "training.device=cuda:7"),
        ("--set", "training.kernels=fast"),
        # More than the memory that this machine has, unless it has much.
        ("--set", "training.tokens_per_batch=auto", "--set", "model.hidden=300000"),
    ],
)
def test_what_only_the_other_machine_can_know_is_asked_there(machines: Machines, given: tuple[str, ...]) -> None:
    told = machines.script(f'[ "$1" = train ] || exec {machines.qkv} "$@"; exit 9')
    assert machines.call("data", "run", *given, qkv=told).returncode == 9


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nothing", "run", "10m"), "nothing is not prepared data"),
        (("data", "run", "--recipe"), "--recipe is not a time such as 90s"),
        (("data", ".", "10m"), ". is not a run directory"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "prepared.json").touch()
    command = [str(STRETCH), "nowhere", *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.startswith(f"stretch: error: {error}")) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("directory", ["~/stretch", "$HOME/stretch"])
def test_a_directory_that_would_be_two_is_refused(tmp_path: Path, directory: str) -> None:
    (tmp_path / "prepared.json").touch()
    ran = Machines(tmp_path, "false").call(".", "run", directory=directory)
    assert (ran.returncode, ran.stderr.startswith(f"stretch: error: STRETCH_DIRECTORY is {directory};")) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["prepared.json"]
