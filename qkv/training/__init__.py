"""How a model learns: objective, optimizer and schedules, the loop, reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from qkv.config import Config
from qkv.errors import ConfigError, NoTimeError
from qkv.prepare import Prepared, prepare
from qkv.prepare.mix import settled
from qkv.run import RunDirectory
from qkv.training.adapting import (
    adapted,
    adapted_from,
    fitting_steps,
    known_of,
    require_named,
    tagged_alike,
    to_adapt,
)
from qkv.training.attempts import train_run
from qkv.training.plan import require_ready
from qkv.training.processes import joined
from qkv.training.stopping import in_time

__all__ = ["adapted", "adapted_from", "fitting_steps", "train", "train_prepared"]


def train(
    files: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    config: Config,
    *,
    valid: Sequence[str | os.PathLike[str]] = (),
    test: Sequence[str | os.PathLike[str]] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    adapt: str | os.PathLike[str] | None = None,
    deadline: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """From parallel text to a trained run: prepares the files into the run directory, then trains on them.

    With `adapt`, a run that was trained before or an exported model, the new run begins with its weights and has its
    vocabulary; its settings, or those that `adapted_from` makes of them, are what fits.

    Training saves and ends before `time.monotonic()` is at the deadline; False where it did, and the same call goes on.
    """
    if isinstance(files, str):
        raise TypeError("train takes a list of files: train([source, target], output, config)")
    run, adapting = RunDirectory(Path(output)), None if adapt is None else Path(adapt)
    before = to_adapt(adapting, run)
    if before is not None:
        require_named(_paths(files), before)
    if adapting is not None:
        if tokenizer is not None:
            raise ConfigError("a model that is adapted keeps its vocabulary; leave the tokenizer out")
        known = known_of(adapting, run)
        config, tokenizer = tagged_alike(_paths(files), config, known), known.tokenizer_file
    config = settled(_paths(files), config)

    def prepare_files() -> bool:
        # Preparing may take long: what is wrong with the rest is said before it.
        require_ready(config, run, adapting)
        with in_time(deadline, _too_late_to_prepare()):
            prepared = prepare(
                _paths(files),
                run.data,
                config,
                valid=_paths(valid),
                test=_paths(test),
                tokenizer=None if tokenizer is None else Path(tokenizer),
            )
        say(prepared.summary())
        return not prepared.reused

    with joined() as processes:
        deadline = processes.lasting(deadline)
        got_on = processes.by_first(prepare_files)
        prepared = Prepared.open(run.data)
        return train_run(config, run, prepared, processes, before=before, deadline=deadline, got_on=got_on)


def train_prepared(
    data: Path,
    output: Path,
    config: Config,
    *,
    adapt: Path | None = None,
    deadline: float | None = None,
    got_on: bool = False,
) -> bool:
    """Trains on a directory that `prepare` wrote, likewise; its text and data settings are those of the run."""
    with joined() as processes:
        prepared = Prepared.open(data)
        run, config = RunDirectory(output), prepared.applied_to(config)
        before = to_adapt(adapt, run)
        vocabulary = prepared.tokenizer().fingerprint
        processes.by_first(lambda: require_ready(config, run, adapt, vocabulary))
        deadline = processes.lasting(deadline)
        return train_run(config, run, prepared, processes, before=before, deadline=deadline, got_on=got_on)


def _too_late_to_prepare() -> NoTimeError:
    return NoTimeError(
        "time was up while the text was being prepared, of which no half is kept; give more time, or prepare it first "
        "without a limit (`qkv prepare`) and train with --data"
    )


def _paths(files: Sequence[str | os.PathLike[str]]) -> list[Path]:
    return [Path(file) for file in files]
