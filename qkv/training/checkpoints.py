"""The checkpoints of a run in progress: written while training goes on, gone back to, and made into final weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from qkv.checkpoint import Saved, final_state, read, sound, step_of, write
from qkv.config import TrainingConfig
from qkv.errors import CheckpointError, StorageError
from qkv.prepare import Prepared
from qkv.run import RunDirectory
from qkv.storage import read_regular
from qkv.training.averaging import FINAL
from qkv.training.divergence import Setback, place_to_go_on
from qkv.training.history import History
from qkv.training.learner import Learner
from qkv.training.processes import Processes
from qkv.training.reports import Log, ProgressLine
from qkv.training.saving import Keeping, Saver, Written
from qkv.training.stopping import Stopping

_SLOW_DISK = 50e6
"""Bytes a second that any disk writes, for as long as nothing was written to this one."""
_BYTES = 4 * 4
"""Of a parameter in a checkpoint, at most: itself, two moments and a moving average, in float32."""


_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def newest_saved(run: RunDirectory, processes: Processes) -> Saved | None:
    """The newest sound checkpoint; all processes read the one that the first has found sound."""
    found: list[Saved] = []

    def find() -> str | None:
        saved = run.newest_sound_checkpoint()
        found.extend([] if saved is None else [saved])
        return None if saved is None else str(saved.directory)

    directory = processes.by_first(find)
    if directory is None:
        return None
    return found[0] if found else read(Path(directory))


def require_same_data(run: RunDirectory, prepared: Prepared) -> None:
    """A run that has learned something goes on with what it learned from."""
    if run.final.is_dir() and not run.checkpoints():
        # Whether it is finished nobody knows: of a run that is packed, the weights may be all that came home.
        raise CheckpointError(f"{run.path} has weights, but no checkpoint to go on from; use another --output")
    if run.learned and run.tokenizer_file.exists() and not _holds(run.tokenizer_file, prepared.tokenizer().model):
        raise CheckpointError(
            f"{run.tokenizer_file} is not the tokenizer of {prepared.directory}; use the data this run was begun with"
        )
    directory, state = run.newest_state()
    if state.get("data", prepared.fingerprint) != prepared.fingerprint:
        raise CheckpointError(f"{directory} was trained on other data; use that, or another --output")


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has just this in it; what is no file, or a larger one, is not read."""
    try:
        return read_regular(path, len(content)) == content
    except ValueError:
        return False


def _by_first(
    work: Callable[Concatenate[Checkpoints, _Given], _Answer],
) -> Callable[Concatenate[Checkpoints, _Given], _Answer]:
    """Of several processes the first does this; all wait for it, and get what it returns."""

    @wraps(work)
    def asked(self: Checkpoints, /, *given: _Given.args, **options: _Given.kwargs) -> _Answer:
        answer: _Answer = self.processes.by_first(lambda: work(self, *given, **options))
        return answer

    return asked


@dataclass
class Checkpoints:
    """What lies on disk of a run, and what comes to lie there: only the first process knows, and only it writes."""

    options: TrainingConfig
    processes: Processes
    run: RunDirectory
    learner: Learner
    history: History
    belongs_to: Mapping[str, Any]
    """What a checkpoint says of the data and settings that it was made with."""
    log: Log
    line: ProgressLine
    stopping: Stopping
    saved_step: int = field(init=False)
    """The step after which the newest checkpoint was written; before the first there is nothing to save."""
    _saver: Saver = field(init=False)

    def __post_init__(self) -> None:
        self.saved_step = self.history.step
        self._saver = Saver(self.run)
        parameters = sum(parameter.numel() for parameter in self.learner.model.parameters())
        self.stopping.expect("save", parameters * _BYTES / _SLOW_DISK)

    def save(self, *, only_passing: bool = False) -> None:
        """Has the checkpoint of this step written while training goes on, where there is room for it.

        One that is `only_passing` changes nothing of what the run ends with.
        """
        if self._ready():
            self._begin(only_passing=only_passing)

    def look_after(self, *, wait: bool) -> None:
        """Tells what came of the last checkpoint, where that is known already or is to be waited for."""
        try:
            self._note(self._saver.outcome(wait=wait))
        except StorageError as error:
            self._say_unsaved(error)

    def save_last(self, *, only_passing: bool = False) -> None:
        """Returns when the last step is on disk; here at last, what cannot be saved ends the run."""
        if self._newest() == self.history.step:
            return
        self._sync_log()
        self._begin(only_passing=only_passing)
        self._finish_save()

    @_by_first
    def go_back(self, setback: Setback) -> int:
        """Removes what was saved since the trouble began, so that this run goes on from before, killed or not."""
        self.look_after(wait=True)
        there = self.run.checkpoints()
        # A run that never stopped knows of lasting ones alone; but where it stopped is better than the beginning.
        lasting = self._keeping().lasting(there) or there
        place = place_to_go_on(lasting, setback.good_until, setback.useless)
        until = 0 if place is None else step_of(place)
        self.run.keep_only(one for one in self.run.checkpoints() if step_of(one) <= until)
        return until

    @_by_first
    def give_up(self, useless: int | None) -> str:
        """Removes the checkpoint that led to nothing but trouble; tells where the run could go on from."""
        self.look_after(wait=True)
        self.run.keep_only(one for one in self.run.checkpoints() if step_of(one) != useless)
        checkpoints = self.run.checkpoints()
        return f"step {step_of(checkpoints[-1]):,}, the last one saved" if checkpoints else "the beginning"

    @_by_first
    def finished(self) -> bool:
        """Whether nothing is left to do: no step to take, and the final weights are there."""
        try:
            done = self.history.done(self.options)
            return done and read(self.run.final, weights_only=True).state["step"] == self.history.step
        except CheckpointError:
            return False

    @_by_first
    def finish(self) -> None:
        """Writes the final weights."""
        kept, how = self._keeping().final(self.run.checkpoints()), self.options.final
        checkpoints = sound(kept)
        if not checkpoints:
            raise CheckpointError(
                f"{kept[-1]}, of which the final weights are made, is damaged; give the same command again"
            )
        last, ends_at = step_of(checkpoints[-1]), self.history.ends_at(self.options)
        if last != ends_at:
            self.line.say(f"the checkpoint of the best validation, step {ends_at:,}, is gone: the last is taken")
        elif last != self.history.step:
            self.line.say(f"the final weights are those of step {last:,}, whose validation was the best")
        write(self.run.final, {"weights": FINAL[how].weights(checkpoints)}, final_state(self._state(), how, last))

    def close(self) -> None:
        """Waits until nothing is being written any more."""
        self._saver.close()

    @_by_first
    def _ready(self) -> bool:
        """Whether a checkpoint can be begun: none is being written, and the log is on disk."""
        self.look_after(wait=True)
        try:
            self.log.sync()
        except StorageError as error:
            self._say_unsaved(error)
            return False
        return True

    @_by_first
    def _newest(self) -> int:
        """The step of the newest checkpoint, once nothing is being written."""
        self.look_after(wait=True)
        return self.saved_step

    @_by_first
    def _sync_log(self) -> None:
        self.log.sync()

    @_by_first
    def _finish_save(self) -> None:
        self._note(self._saver.outcome(wait=True))

    def _begin(self, *, only_passing: bool) -> None:
        """Copies what is to be saved; where weights are in parts, each process gives its own."""
        tensors, history = self.learner.tensors(), self.history
        # Where it was saved in passing before, it may have come to stay.
        history.passing = [step for step in history.passing if step != history.step]
        history.passing += [history.step] if only_passing else []
        if not self.processes.first:
            deque(tensors, maxlen=0)
            return
        there = {*map(step_of, self.run.checkpoints()), history.step}
        history.passing = [step for step in history.passing if step in there]
        self._saver.begin(history.step, tensors, self._state(), self._keeping())

    def _note(self, written: Written | None) -> None:
        if written is not None:
            self.saved_step = written.step
            self.stopping.took("save", written.seconds)

    def _say_unsaved(self, error: StorageError) -> None:
        kept = f"the checkpoint of step {self.saved_step:,} is untouched" if self.saved_step else "there is none yet"
        self.line.say(f"not saved: {error.what}; {kept}, and training goes on until the next save is due")

    def _state(self) -> dict[str, Any]:
        """What a resumed run must know beside its tensors."""
        return {**self.history.state(), **self.belongs_to}

    def _keeping(self) -> Keeping:
        options, history = self.options, self.history
        return Keeping(
            last=max(options.keep_checkpoints, options.average_checkpoints),
            best_step=history.best_step,
            ends_at=history.ends_at(options),
            made_of=FINAL[options.final].count(options),
            passing=frozenset(history.passing).difference([history.step] if history.done(options) else []),
        )
