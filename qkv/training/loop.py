"""The training loop (section 5): what step n does depends on the settings and n alone, so a run can always go on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import torch

from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.data.batches import Batches
from qkv.errors import TrainingError
from qkv.prepare import Prepared
from qkv.run import RunDirectory
from qkv.storage import write_atomically
from qkv.training.checkpoints import Checkpoints
from qkv.training.divergence import SLOWER, Diverged, Setback
from qkv.training.feeding import prefetched
from qkv.training.history import History
from qkv.training.learner import Learner
from qkv.training.optimizer import learning_rate
from qkv.training.processes import Processes
from qkv.training.reports import Log, ProgressLine, Window
from qkv.training.step import Outcome
from qkv.training.stopping import SIGNAL, Stopping
from qkv.training.validation import Validation

_NAMED_LINES = 5


class _Begun(NamedTuple):
    """A step that the device has been told to take."""

    step: int
    source_tokens: int
    target_tokens: int
    outcome: Callable[[], Outcome]


@dataclass
class Training:
    """A run in progress."""

    config: Config
    run: RunDirectory
    prepared: Prepared
    processes: Processes
    batches: Batches
    validation: Validation
    learner: Learner
    history: History
    checkpoints: Checkpoints
    log: Log
    line: ProgressLine
    stopping: Stopping
    begun_at: int
    """The step after which this attempt began."""
    gone_back: bool
    """Whether it began because the one before had gone wrong."""
    asked: float = 0.0
    """What asks this process to stop."""
    all_asked: float = 0.0
    """What asked all of them together when the last step was begun whose outcome is known."""
    begun: _Begun | None = None
    """The step whose outcome has not been asked for yet."""
    clock: float = 0.0
    """When that began."""

    @property
    def step(self) -> int:
        return self.history.step

    @property
    def done(self) -> bool:
        return self.history.done(self.config.training)

    def run_steps(self) -> None:
        """Trains until all is done or it is to stop, and saves the last step, so that it can go on right after it."""
        self.learner.model.train()
        if self.done:
            return
        # Where training ended before it had validated, that is done first.
        if (not self.history.unvalidated or self.validate_and_save()) and not self.done:
            self.take_steps()
        self.account()
        self.learner.take_step.queue.wait()
        self.checkpoints.save_last(only_passing=not self.done)

    def take_steps(self) -> None:
        options, history = self.config.training, self.history
        self.clock = time.perf_counter()
        steps = range(self.step, options.steps)
        for batch in prefetched(self.batches, steps, self.processes, self.learner.device):
            if self._to_stop():
                return
            self.update(batch)
            if not self.pause():
                continue
            self.account()
            self.learner.take_step.queue.wait()
            if self.at(options.report_every):
                self.report()
            history.unvalidated = self.at(options.validate_every)
            if not self.validate_and_save() or self.done:
                return
            # What was done beside training is not its time.
            self.clock = time.perf_counter()

    def validate_and_save(self) -> bool:
        """Does what is due after this step; False where a signal came before that was validated."""
        options, history = self.config.training, self.history
        if history.unvalidated:
            self._make_safe_from_the_clock()
            if not self.validate():
                self.all_asked = SIGNAL
                return False
        # Among bad steps nothing is saved: whoever goes on more carefully should do so from before them. Nor before the
        # first step, when the weights are those that lie in the run already.
        if self.step and not history.bad_steps:
            if self.at(options.save_every):
                self.checkpoints.save()
            elif history.best_step == self.step:
                # With patience, the run may end with what is the best now.
                self.checkpoints.save(only_passing=options.patience is None)
        self.checkpoints.look_after(wait=False)
        if history.stopped_early(options):
            self.line.say(
                f"stopped early: {options.patience} validations in a row were no better than that of step "
                f"{history.best_step}"
            )
        return True

    def _to_stop(self) -> bool:
        """Whether to stop before the next step: several do when a step has told all that one of them is to."""
        self.asked = self.stopping.asked(still_to_do=self._still_to_do())
        if self.processes.count == 1:
            self.all_asked = self.asked
        return self.all_asked > 0

    def _still_to_do(self) -> tuple[str, ...]:
        """What would be done if training went on here and stopped as soon as it can."""
        options = self.config.training
        # What came of a step is asked for when the next one has begun.
        steps = range(self.step + 1, self.step + (2 if self.processes.count == 1 else 3))
        last = options.steps in steps
        validates = last or any(step % options.validate_every == 0 for step in steps)
        # After the last step, the final weights are written too.
        return ("step",) * len(steps) + ("validation",) * validates + ("save",) + ("save",) * last

    def at(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.training.steps

    def pause(self) -> bool:
        """Whether this step is one after which something is to be told, tried or saved."""
        options = self.config.training
        return any(map(self.at, (options.report_every, options.validate_every, options.save_every)))

    def update(self, batch: PairBatch) -> None:
        """Starts the next step, then sees what has come of the one before."""
        self.history.step += 1
        outcome = self.learner.take_step.begin(batch, self.step, rate_factor=self.history.rate_factor, stop=self.asked)
        begun = _Begun(self.step, batch.source_tokens, batch.target_tokens, outcome)
        self.account()
        self.begun = begun

    def account(self) -> None:
        """Waits for the step begun last, and writes down what came of it."""
        if self.begun is None:
            return
        begun, self.begun = self.begun, None
        outcome = begun.outcome()
        options, history = self.config.training, self.history
        now = time.perf_counter()
        seconds, self.clock = now - self.clock, now
        history.seconds += seconds
        self.stopping.took("step", seconds)
        self.all_asked = max(self.all_asked, outcome.stop)
        if not outcome.finite:
            self._bad_step(begun.step, outcome)
            return
        history.bad_steps = []
        history.window.add(
            total=outcome.total,
            surprise=outcome.surprise,
            target_tokens=begun.target_tokens,
            tokens=begun.source_tokens + begun.target_tokens,
            seconds=seconds,
            idle=outcome.idle,
        )
        history.window.last = {
            "learning_rate": learning_rate(options, self.config.model.width, begun.step) * history.rate_factor,
            "gradient_norm": outcome.gradient_norm,
            "epoch": self.batches.epoch_at(begun.step),
        }
        self.line.step(begun.step, history.window.summary(), report=False)
        if options.tolerated_rise is not None:
            wrong = history.watch.add(begun.step, outcome.total / begun.target_tokens, options.tolerated_rise)
            if wrong is not None:
                self._diverge(f"{wrong}, seen at step {begun.step:,}", begun.step, history.watch.good_until)

    def _bad_step(self, step: int, outcome: Outcome) -> None:
        """Counts a step that was left out; after too many in a row training goes back, with the sentences named."""
        loss, norm, history = outcome.total, outcome.gradient_norm, self.history
        history.skipped += 1
        history.bad_steps.append(step)
        self.log.write("skipped", step, loss=repr(loss), gradient_norm=repr(norm))
        self.line.say(f"step {step:,} left out: loss {loss}, gradient norm {norm}")
        if len(history.bad_steps) < self.config.training.tolerated_bad_steps:
            return
        lines = {bad: self.prepared.places(self.batches.lines_of_step(bad - 1)) for bad in history.bad_steps}
        path = self.run.path / f"bad-step-{step}.json"
        self.processes.by_first(lambda: write_atomically(path, json.dumps({"lines of each step": lines}).encode()))
        some = ", ".join(lines[step][:_NAMED_LINES])
        reason = (
            f"{len(history.bad_steps)} steps in a row had a loss or gradient that is not finite, the last one step "
            f"{step:,} with {some}, …; all are named in {path}"
        )
        good_until = history.bad_steps[0] - 1
        # Not one good step since it was loaded: whatever the learning rate, that checkpoint leads nowhere.
        self._diverge(reason, step, good_until, self.begun_at if good_until <= self.begun_at else None)

    def _diverge(self, reason: str, step: int, good_until: int, useless: int | None = None) -> NoReturn:
        """Goes back with a smaller learning rate; where that was done too often, ends the run.

        `useless` is the step of a checkpoint that is not to be gone on from.
        """
        done = self.history.rollbacks
        if done < self.config.training.rollbacks:
            factor = self.history.rate_factor * SLOWER
            # Only after a rollback: a run that was killed here and goes on must do as one that was not.
            given_up = useless if self.gone_back else None
            raise Diverged(Setback(reason, step, good_until, given_up, done + 1, factor))
        place = self.checkpoints.give_up(useless)
        often = f", after {done} rollbacks" if done else ""
        clip = self.config.training.clip
        tighter = "training.clip=1" if clip is None or clip > 1 else f"training.clip={clip / 2:g}"
        raise TrainingError(
            f"{reason}{often}. Try a smaller training.learning_rate, more training.warmup_steps or {tighter}: "
            f"the same command goes on from {place}"
        )

    def report(self) -> None:
        history = self.history
        if not history.window.values["target_tokens"]:
            return
        values = history.window.summary()
        if self.learner.device.type == "cuda":
            values["memory"] = torch.cuda.max_memory_allocated(self.learner.device)
        self.log.write("train", self.step, **values, skipped=history.skipped, seconds=history.seconds)
        self.line.step(self.step, values, report=True)
        history.window = Window()

    def _make_safe_from_the_clock(self) -> None:
        """Nobody knows yet how long a validation takes: should time be up meanwhile, what was learned is saved."""
        if self.step and self.stopping.timed and not self.history.validation_seconds and not self.history.bad_steps:
            self.checkpoints.save_last(only_passing=not self.at(self.config.training.save_every))

    def validate(self) -> bool:
        """Tells how good the model is; False where a signal came before that was known."""
        begun = time.monotonic()
        with self.learner.with_best_weights():
            values = self.processes.by_first(
                lambda: self.validation.run(self.learner.model, to_stop=lambda: self.stopping.signalled)
            )
        if values is None:
            return False
        took = time.monotonic() - begun
        self.stopping.took("validation", took)
        self.history.validation_seconds = max(took, self.history.validation_seconds)
        self.log.write("validation", self.step, **values, seconds=self.history.seconds)
        self.line.validation(self.step, values)
        if self.step == 0:
            self._require_sound_start(values["loss"])
            self.history.unvalidated = False
            return True
        if not math.isfinite(values["loss"]):
            self._diverge(f"the validation loss after step {self.step:,} is not finite", self.step, self.step - 1)
        self.history.validated(values["loss"])
        return True

    def _require_sound_start(self, loss: float) -> None:
        """Another's weights are no step of this run: it neither goes back from them nor ends with them as its best."""
        if not math.isfinite(loss):
            raise TrainingError(
                f"the validation loss of the weights in {self.run.start} is not finite: nothing can be learned from "
                "there. Adapt another run"
            )
