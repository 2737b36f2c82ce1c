"""A run is trained by attempts: from the newest checkpoint on, and where that goes wrong, once more from before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from qkv.checkpoint import BEGAN_WITH, Saved
from qkv.config import Config
from qkv.devices import choose_device, release_memory
from qkv.errors import CheckpointError, QkvError, TrainingError
from qkv.prepare import Prepared
from qkv.run import MAY_CHANGE, RunDirectory
from qkv.settings import settings
from qkv.storage import write_atomically
from qkv.text.subwords import Tokenizer
from qkv.training.adapting import begin_with, origin, start_of
from qkv.training.before import Before
from qkv.training.checkpoints import Checkpoints, newest_saved, require_same_data
from qkv.training.divergence import Diverged, Setback
from qkv.training.feeding import batches_of
from qkv.training.fitting import fitted
from qkv.training.history import History
from qkv.training.learner import Learner
from qkv.training.loop import Training
from qkv.training.parallel import require_rows
from qkv.training.processes import Processes
from qkv.training.reports import Log, ProgressLine
from qkv.training.stopping import Stopping
from qkv.training.validation import Validation


def train_run(
    config: Config,
    run: RunDirectory,
    prepared: Prepared,
    processes: Processes,
    *,
    before: Before | None = None,
    deadline: float | None = None,
    got_on: bool = False,
) -> bool:
    """Trains until the steps are done, going on from the newest checkpoint where there is one.

    A new run may begin with the weights of what was `before`.

    False where time was up before; a signal raises `Stopped`. The same call goes on in either case. Time for nothing at
    all raises `NoTimeError`, unless whoever calls has `got_on` before.
    """
    with ExitStack() as held:

        def claim() -> int | str:
            # A flipped byte in the ids would be learned without a word: reading them once is cheap beside training.
            prepared.verify()
            held.enter_context(run.held())
            require_same_data(run, prepared)
            return run.settled(config).training.tokens_per_batch

        def begin() -> None:
            run.begin(settled)
            run.remember(prepared.directory)
            write_atomically(run.tokenizer_file, prepared.tokenizer().model)
            # Last, as what tells that the run before is needed no more.
            if before is not None:
                begin_with(run, before)

        tokens = processes.by_first(claim)
        device = processes.own_device(choose_device(config.training.device))
        processes.connect(device)
        settled = fitted(config.with_changes(training={"tokens_per_batch": tokens}), processes, prepared)
        processes.by_first(begin)
        stopping = Stopping(deadline, got_on=got_on)
        ended = _attempt(_begin(settled, run, prepared, processes, stopping))
        while isinstance(ended, Setback):
            # There may be no room for two.
            release_memory(device)
            ended = _attempt(_begin(settled, run, prepared, processes, stopping, ended))
        return ended


def _begin(
    config: Config,
    run: RunDirectory,
    prepared: Prepared,
    processes: Processes,
    stopping: Stopping,
    setback: Setback | None = None,
) -> Training:
    """A new run, or the one that the newest sound checkpoint tells of, with what a setback changes in it."""
    options = config.training
    tokenizer = prepared.tokenizer()
    require_rows(config.fewest_rows, options, processes.count)
    batches, held_out = (batches_of(config, prepared, name) for name in ("train", "valid"))
    saved = newest_saved(run, processes)
    start = start_of(run, config, prepared) if saved is None else None
    learner = Learner.begin(config, tokenizer.size, processes, start)
    if saved is not None:
        run.require_settings(config, saved)
        learner.restore(saved)
    try:
        history = History.of({} if saved is None else saved.state)
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{run.path}: the state of its newest checkpoint is damaged: {error}") from error
    # How good another's weights are is told before they are changed.
    history.unvalidated = history.unvalidated or start is not None
    stopping.expect("validation", history.validation_seconds)
    known = history.rollbacks if setback is None else setback.number - 1
    silent = not processes.first
    board = options.tensorboard
    log = Log(run.log, history.step, known, unvalidated=history.unvalidated, tensorboard=board, silent=silent)
    line = ProgressLine(options.steps, silent=silent)
    if setback is not None:
        history.go_on_after(setback)
        log.write("rollback", history.step, **setback.report())
    belongs_to = _belongs_to(config, run, prepared, tokenizer, saved)
    return Training(
        config=config,
        run=run,
        prepared=prepared,
        processes=processes,
        batches=batches,
        validation=Validation.load(prepared, held_out, tokenizer, config),
        learner=learner,
        history=history,
        checkpoints=Checkpoints(options, processes, run, learner, history, belongs_to, log, line, stopping),
        log=log,
        line=line,
        stopping=stopping,
        begun_at=history.step,
        gone_back=setback is not None,
    )


def _belongs_to(
    config: Config, run: RunDirectory, prepared: Prepared, tokenizer: Tokenizer, saved: Saved | None
) -> dict[str, Any]:
    """What a checkpoint says of the data and settings that it was made with."""
    began_with = origin(run) if saved is None else saved.state.get(BEGAN_WITH)
    return {
        "data": prepared.fingerprint,
        "tokenizer": tokenizer.fingerprint,
        "model": dataclasses.asdict(config.model),
        "settings": {name: value for name, value in settings(config) if name not in MAY_CHANGE},
        **({} if began_with is None else {BEGAN_WITH: began_with}),
    }


def _attempt(training: Training) -> Setback | bool:
    """Trains until the run has to go back, or has not; then, whether it is finished."""
    run, line = training.run, training.line
    try:
        if training.checkpoints.finished():
            line.say(f"{run.path} is finished; {_how_to_go_on(training)}")
            return True
        with _full_memory_explained(training):
            with training.stopping.listening():
                _introduce(training)
                training.run_steps()
                if not training.done:
                    why = _why_it_stopped(training)
                    training.log.write("stopped", training.step, why=why)
                    line.say(why)
                    return False
            training.checkpoints.finish()
    except Diverged as diverged:
        _go_back(training, diverged.setback)
        return diverged.setback
    except QkvError as error:
        training.log.write("stopped", training.step, why=str(error))
        raise
    finally:
        training.checkpoints.close()
        line.close()
        training.log.close()
    skipped = training.history.skipped
    left_out = f"; {skipped:,} steps were left out" if skipped else ""
    line.say(f"finished after step {training.step:,}: {run.path}{left_out}")
    return True


def _introduce(training: Training) -> None:
    """Says what is about to happen."""
    line, learner, batches, count = training.line, training.learner, training.batches, training.processes.count
    device, precision = learner.device, str(learner.precision).removeprefix("torch.")
    parameters = sum(parameter.numel() for parameter in learner.model.parameters())
    where = str(device) if device.type == "cpu" else torch.cuda.get_device_name(device)
    together = f" in {count} processes" if count > 1 else ""
    line.say(
        f"{parameters:,} parameters on {where} in {precision}{together}; "
        f"{len(batches.rows):,} rows of {training.config.row_width} positions, {batches.fill:.1%} full on "
        "the target's side"
    )
    if batches.left_out:
        line.say(f"{batches.left_out:,} pairs are longer than a row and are not learned from")
    if training.step:
        line.say(f"going on after step {training.step:,}")
    elif training.run.start.is_dir():
        line.say(f"beginning with the weights in {training.run.start}")
    if training.validation.texts and not training.validation.can_score():
        line.say("no BLEU while training: sacrebleu is not installed")


def _how_to_go_on(training: Training) -> str:
    options = training.config.training
    if training.history.stopped_early(options):
        return f"it stopped early; to go on, set training.patience above {options.patience}"
    return f"to go on, set training.steps above {training.step}"


def _why_it_stopped(training: Training) -> str:
    """What the first process tells of it."""
    told: str = training.processes.by_first(lambda: training.stopping.explain(training.step, training.all_asked))
    return told


def _go_back(training: Training, setback: Setback) -> None:
    """Leaves only what was there before the trouble began; another attempt goes on from there."""
    training.learner.take_step.queue.wait()
    until = training.checkpoints.go_back(setback)
    training.line.say(
        f"{setback.reason}: back to step {until:,} with {setback.rate_factor:g} of the learning rate "
        f"(rollback {setback.number} of {training.config.training.rollbacks})"
    )


@contextmanager
def _full_memory_explained(training: Training) -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            f"the memory of {training.learner.device} is full; --set training.accumulate="
            f"{2 * training.config.training.accumulate} needs about half as much of it for the same steps"
        ) from error
