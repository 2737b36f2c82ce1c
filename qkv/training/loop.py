"""The training loop (section 5): what step n does depends on the settings and n alone, so a run can always go on."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from qkv.checkpoint import MAY_CHANGE, RunDirectory, Saved, final_state, read, step_of, write
from qkv.config import Config, settings
from qkv.data.batch import PairBatch
from qkv.data.batches import Batches, Marks
from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.errors import CheckpointError, StorageError, TrainingError
from qkv.models.build import build, hasten
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.prepare import Prepared
from qkv.storage import write_atomically
from qkv.training.averaging import FINAL, MovingAverage
from qkv.training.divergence import SLOWER, Diverged, Setback, Watch, place_to_go_on
from qkv.training.optimizer import build_optimizers, learning_rate
from qkv.training.reports import Log, ProgressLine, Window
from qkv.training.saving import Keeping, Saver, Written
from qkv.training.step import Outcome, Step
from qkv.training.stopping import Stopping
from qkv.training.validation import Validation
from qkv.training.weights import Weights

_NAMED_LINES = 5
_AHEAD = 3
"""Batches made while others are computed with."""
_SLOW_DISK = 50e6
"""Bytes a second that any disk writes, for as long as nothing was written to this one."""
_COPIES = 4
"""Tensors of a weight's size in a checkpoint, at most: itself, two moments and a moving average."""
_REMEMBERED = (
    "step", "seconds", "skipped", "bad_steps", "best_loss", "best_step", "validations_since_best", "stopped_at",
    "rollbacks", "rate_factor",
)  # fmt: skip


def train_run(config: Config, run: RunDirectory, prepared: Prepared, *, deadline: float | None = None) -> None:
    """Trains until the steps are done or it is to stop, going on from the newest checkpoint where there is one."""
    # A flipped byte in the ids would be learned without a word: reading them once is cheap beside training.
    prepared.verify()
    with run.held():
        require_same_data(run, prepared)
        run.begin(config)
        write_atomically(run.tokenizer_file, prepared.tokenizer().model)
        stopping = Stopping(deadline)
        setback = _attempt(_Training.begin(config, run, prepared, stopping))
        while setback is not None:
            setback = _attempt(_Training.begin(config, run, prepared, stopping, setback))


def _attempt(training: _Training) -> Setback | None:
    """Trains until the run is finished, is to stop, or has to go back."""
    run, line = training.run, training.line
    try:
        if training.finished():
            line.say(f"{run.path} is finished; {training.how_to_go_on()}")
            return None
        training.introduce()
        with training.stopping.listening():
            training.run_steps()
        if not training.done:
            line.say(training.stopping.explain(training.step))
            return None
        training.finish()
    except Diverged as diverged:
        training.go_back(diverged.setback)
        return diverged.setback
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            f"the memory of {training.device} is full; --set training.accumulate="
            f"{2 * training.config.training.accumulate} needs about half as much of it for the same steps"
        ) from error
    finally:
        training.saver.close()
        line.close()
        training.log.close()
    left_out = f"; {training.skipped:,} steps were left out" if training.skipped else ""
    line.say(f"finished after step {training.step:,}: {run.path}{left_out}")
    return None


def require_same_data(run: RunDirectory, prepared: Prepared) -> None:
    """A run that has learned something goes on with what it learned from."""
    if run.final.is_dir() and not run.checkpoints():
        raise CheckpointError(f"{run.path} is finished and has no checkpoint to go on from; use another --output")
    if run.learned and run.tokenizer_file.exists() and run.tokenizer_file.read_bytes() != prepared.tokenizer().model:
        raise CheckpointError(
            f"{run.tokenizer_file} is not the tokenizer of {prepared.directory}; use the data this run was begun with"
        )
    directory, state = run.newest_state()
    if state.get("data", prepared.fingerprint) != prepared.fingerprint:
        raise CheckpointError(f"{directory} was trained on other data; use that, or another --output")


class _Begun(NamedTuple):
    """A step that the device has been told to take."""

    step: int
    source_tokens: int
    target_tokens: int
    outcome: Callable[[], Outcome]


@dataclass
class _Training:
    """A run in progress."""

    config: Config
    run: RunDirectory
    batches: Batches
    validation: Validation
    model: EncoderDecoder
    weights: Weights
    optimizers: list[torch.optim.Optimizer]
    take_step: Step
    device: torch.device
    precision: torch.dtype
    log: Log
    line: ProgressLine
    moving: MovingAverage | None
    prepared: Prepared
    stopping: Stopping
    saver: Saver
    tokenizer: str
    """The fingerprint of the tokenizer."""
    step: int = 0
    seconds: float = 0.0
    window: Window = field(default_factory=Window)
    skipped: int = 0
    bad_steps: list[int] = field(default_factory=list)
    """The steps left out since the last good one."""
    best_loss: float | None = None
    best_step: int | None = None
    """When the validation loss was the best one."""
    validations_since_best: int = 0
    stopped_at: list[int] = field(default_factory=list)
    """Steps that were saved only because training stopped there: a run that never stopped does not know of them."""
    rollbacks: int = 0
    """How often the run has gone back."""
    rate_factor: float = 1.0
    """What is left of the learning rate since."""
    watch: Watch = field(default_factory=Watch)
    begun_at: int = 0
    """The step after which this attempt began."""
    gone_back: bool = False
    """Whether it began because the one before had gone wrong."""
    saved_step: int = 0
    """The step after which the newest checkpoint was written; before the first there is nothing to save."""
    begun: _Begun | None = None
    """The step whose outcome has not been asked for yet."""
    clock: float = 0.0
    """When that began."""

    @classmethod
    def begin(
        cls,
        config: Config,
        run: RunDirectory,
        prepared: Prepared,
        stopping: Stopping,
        setback: Setback | None = None,
    ) -> _Training:
        """A new run, or the one that the newest sound checkpoint tells of, with what a setback changes in it."""
        options = config.training
        tokenizer = prepared.tokenizer()
        marks = Marks(tokenizer.padding, tokenizer.begin, tokenizer.end)
        rows = options.tokens_per_batch // config.data.row_width
        width = config.data.row_width
        batches, held_out = (
            Batches(prepared.corpus(name), width=width, rows_a_step=rows, marks=marks, seed=options.seed)
            for name in ("train", "valid")
        )
        device = choose_device(options.device)
        model = build(config.model, tokenizer.size, seed=options.seed).to(device)
        precision = choose_precision(options.precision, device)
        fast = choose_kernels(options.kernels, device)
        if fast:
            hasten(model)
        weights = Weights(model, precision)
        products = [f"{name}.weight" for name, part in model.named_modules() if isinstance(part, nn.Linear)]
        optimizers = build_optimizers(options, weights.exact, products)
        saved = run.newest_sound_checkpoint()
        if saved is not None:
            run.require_settings(config, saved)
            _restore(saved, weights, optimizers)
        moving = _moving_average(config, weights, saved)
        state = saved.state if saved is not None else {}
        training = cls(
            config=config,
            run=run,
            batches=batches,
            validation=Validation.load(prepared.directory, held_out, tokenizer, config),
            model=model,
            weights=weights,
            optimizers=optimizers,
            take_step=Step(config, model, weights, optimizers, moving, captured=fast),
            device=device,
            precision=precision,
            log=Log(
                run.log,
                since_step=state.get("step", 0),
                rollbacks=state.get("rollbacks", 0) if setback is None else setback.number - 1,
                tensorboard=options.tensorboard,
            ),
            line=ProgressLine(options.steps),
            moving=moving,
            prepared=prepared,
            stopping=stopping,
            saver=Saver(run),
            tokenizer=tokenizer.fingerprint,
        )
        for name in _REMEMBERED:
            setattr(training, name, state.get(name, getattr(training, name)))
        training.window, training.watch = Window(state.get("window")), Watch(state.get("watch"))
        if setback is not None:
            training.note(setback)
        training.gone_back, training.begun_at = setback is not None, training.step
        training.saved_step = training.step
        stopping.expect("save", sum(tensor.nbytes for tensor in weights.exact.values()) * _COPIES / _SLOW_DISK)
        return training

    @property
    def done(self) -> bool:
        return self.step >= self.config.training.steps or self.stopped_early

    @property
    def stopped_early(self) -> bool:
        patience = self.config.training.patience
        return patience is not None and self.validations_since_best >= patience

    def finished(self) -> bool:
        """Whether nothing is left to do: no step to take, and the final weights are there."""
        try:
            return self.done and read(self.run.final, weights_only=True).state["step"] == self.step
        except CheckpointError:
            return False

    def how_to_go_on(self) -> str:
        if self.stopped_early:
            return f"it stopped early; to go on, set training.patience above {self.config.training.patience}"
        return f"to go on, set training.steps above {self.step}"

    def introduce(self) -> None:
        """Says what is about to happen."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        where = str(self.device) if self.device.type == "cpu" else torch.cuda.get_device_name(self.device)
        self.line.say(
            f"{parameters:,} parameters on {where} in {str(self.precision).removeprefix('torch.')}; "
            f"{len(self.batches.rows):,} rows of {self.config.data.row_width} positions, {self.batches.fill:.1%} full"
        )
        if self.step:
            self.line.say(f"going on after step {self.step:,}")
        if self.validation.sources and not self.validation.can_score():
            self.line.say("no BLEU while training: sacrebleu is not installed")

    def run_steps(self) -> None:
        options = self.config.training
        self.model.train()
        if self.done:
            return
        self.clock = time.perf_counter()
        for batch in self._prefetched():
            if self.stopping.now(still_to_do=self._due_after(self.step + 1)):
                self.stop()
                return
            self.update(batch)
            if not self.pause():
                continue
            self.account()
            self.take_step.queue.wait()
            if self.at(options.report_every):
                self.report()
            if self.at(options.validate_every):
                self.validate()
            # With patience, the run may end with what is the best now. Among bad steps nothing is saved: whoever goes
            # on more carefully should do so from before them.
            due = self.at(options.save_every) or (options.patience is not None and self.best_step == self.step)
            if due and not self.bad_steps:
                self.save()
            self._look_after_save(wait=False)
            if self.stopped_early:
                self.line.say(
                    f"stopped early: {options.patience} validations in a row were no better than that of step "
                    f"{self.best_step}"
                )
                break
            # What was done beside training is not its time.
            self.clock = time.perf_counter()
        self._end_saved()

    def _end_saved(self) -> None:
        """Returns when the last step is on disk; here at last, what cannot be saved ends the run."""
        self._look_after_save(wait=True)
        if self.saved_step != self.step:
            self._begin_save()
            self._note_saved(self.saver.outcome(wait=True))

    def stop(self) -> None:
        """Saves the last step, so that training can go on right after it."""
        self.account()
        self.take_step.queue.wait()
        self._look_after_save(wait=True)
        if self.saved_step != self.step:
            self.stopped_at.append(self.step)
        self._end_saved()

    def _due_after(self, step: int) -> tuple[str, ...]:
        """What is done after a step, if training stops there; after the last, the final weights are written too."""
        options = self.config.training
        last = step == options.steps
        validates = last or step % options.validate_every == 0
        return ("validation",) * validates + ("save",) + ("save",) * last

    def at(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.training.steps

    def pause(self) -> bool:
        """Whether this step is one after which something is to be told, tried or saved."""
        options = self.config.training
        return any(map(self.at, (options.report_every, options.validate_every, options.save_every)))

    def update(self, batch: PairBatch) -> None:
        """Starts the next step, then sees what has come of the one before."""
        self.step += 1
        outcome = self.take_step.begin(batch, self.step, rate_factor=self.rate_factor)
        begun = _Begun(self.step, batch.source_tokens, batch.target_tokens, outcome)
        self.account()
        self.begun = begun

    def account(self) -> None:
        """Waits for the step begun last, and writes down what came of it."""
        if self.begun is None:
            return
        begun, self.begun = self.begun, None
        outcome = begun.outcome()
        now = time.perf_counter()
        seconds, self.clock = now - self.clock, now
        self.seconds += seconds
        self.stopping.took("step", seconds)
        if not outcome.finite:
            self._bad_step(begun.step, outcome)
            return
        self.bad_steps = []
        self.window.add(
            total=outcome.total,
            surprise=outcome.surprise,
            target_tokens=begun.target_tokens,
            tokens=begun.source_tokens + begun.target_tokens,
            seconds=seconds,
            idle=outcome.idle,
        )
        self.window.last = {
            "learning_rate": learning_rate(self.config.training, self.config.model.width, begun.step)
            * self.rate_factor,
            "gradient_norm": outcome.gradient_norm,
            "epoch": self.batches.epoch_at(begun.step),
        }
        self.line.step(begun.step, self.window.summary(), report=False)
        allowed = self.config.training.tolerated_rise
        wrong = None if allowed is None else self.watch.add(begun.step, outcome.total / begun.target_tokens, allowed)
        if wrong is not None:
            self._diverge(f"{wrong}, seen at step {begun.step:,}", begun.step, self.watch.good_until)

    def _diverge(self, reason: str, step: int, good_until: int, useless: int | None = None) -> NoReturn:
        """Goes back with a smaller learning rate; where that was done too often, ends the run.

        `useless` is the step of a checkpoint that is not to be gone on from.
        """
        if self.rollbacks < self.config.training.rollbacks:
            factor = self.rate_factor * SLOWER
            # Only after a rollback: a run that was killed here and goes on must do as one that was not.
            given_up = useless if self.gone_back else None
            raise Diverged(Setback(reason, step, good_until, given_up, self.rollbacks + 1, factor))
        self._look_after_save(wait=True)
        self.run.keep_only(one for one in self.run.checkpoints() if step_of(one) != useless)
        often = f", after {self.rollbacks} rollbacks" if self.rollbacks else ""
        raise TrainingError(
            f"{reason}{often}. Try a smaller training.learning_rate, more training.warmup_steps or training.clip=1: "
            f"the same command goes on from {self._last_saved()}"
        )

    def _last_saved(self) -> str:
        checkpoints = self.run.checkpoints()
        return f"step {step_of(checkpoints[-1]):,}, the last one saved" if checkpoints else "the beginning"

    def go_back(self, setback: Setback) -> None:
        """Removes what was saved since the trouble began, so that this run goes on from before, killed or not."""
        self.take_step.queue.wait()
        self._look_after_save(wait=True)
        lasting = self._keeping().lasting(self.run.checkpoints())
        place = place_to_go_on(lasting, setback.good_until, setback.useless)
        until = 0 if place is None else step_of(place)
        self.run.keep_only(one for one in self.run.checkpoints() if step_of(one) <= until)
        self.line.say(
            f"{setback.reason}: back to step {until:,} with {setback.rate_factor:g} of the learning rate "
            f"(rollback {setback.number} of {self.config.training.rollbacks})"
        )

    def note(self, setback: Setback) -> None:
        """Goes on from here as a setback asks for."""
        self.rollbacks, self.rate_factor = setback.number, setback.rate_factor
        self.log.write(
            "rollback",
            self.step,
            rollback=setback.number,
            from_step=setback.from_step,
            rate_factor=setback.rate_factor,
            reason=setback.reason,
        )

    def _bad_step(self, step: int, outcome: Outcome) -> None:
        """Counts a step that was left out; after too many in a row training goes back, with the sentences named."""
        loss, norm = outcome.total, outcome.gradient_norm
        self.skipped += 1
        self.bad_steps.append(step)
        self.log.write("skipped", step, loss=repr(loss), gradient_norm=repr(norm))
        self.line.say(f"step {step:,} left out: loss {loss}, gradient norm {norm}")
        if len(self.bad_steps) < self.config.training.tolerated_bad_steps:
            return
        lines = {bad: self.prepared.places(self.batches.lines_of_step(bad - 1)) for bad in self.bad_steps}
        path = self.run.path / f"bad-step-{step}.json"
        write_atomically(path, json.dumps({"lines of each step": lines}).encode())
        some = ", ".join(lines[step][:_NAMED_LINES])
        reason = (
            f"{len(self.bad_steps)} steps in a row had a loss or gradient that is not finite, the last one step "
            f"{step:,} with {some}, …; all are named in {path}"
        )
        good_until = self.bad_steps[0] - 1
        # Not one good step since it was loaded: whatever the learning rate, that checkpoint leads nowhere.
        self._diverge(reason, step, good_until, self.begun_at if good_until <= self.begun_at else None)

    def report(self) -> None:
        if not self.window.values["target_tokens"]:
            return
        values = self.window.summary()
        if self.device.type == "cuda":
            values["memory"] = torch.cuda.max_memory_allocated(self.device)
        self.log.write("train", self.step, **values, skipped=self.skipped, seconds=self.seconds)
        self.line.step(self.step, values, report=True)
        self.window = Window()

    def validate(self) -> None:
        begun = time.monotonic()
        with nullcontext() if self.moving is None else self.weights.replaced_by(self.moving.tensors):
            values = self.validation.run(self.model)
        self.stopping.took("validation", time.monotonic() - begun)
        self.log.write("validation", self.step, **values, seconds=self.seconds)
        self.line.validation(self.step, values)
        if not math.isfinite(values["loss"]):
            self._diverge(f"the validation loss after step {self.step:,} is not finite", self.step, self.step - 1)
        if values["loss"] < (math.inf if self.best_loss is None else self.best_loss):
            self.best_loss, self.best_step, self.validations_since_best = values["loss"], self.step, 0
        else:
            self.validations_since_best += 1

    def save(self) -> None:
        """Has the checkpoint of this step written while training goes on, where there is room for it."""
        self._look_after_save(wait=True)
        try:
            self._begin_save()
        except StorageError as error:
            self._say_unsaved(error)

    def _look_after_save(self, *, wait: bool) -> None:
        try:
            self._note_saved(self.saver.outcome(wait=wait))
        except StorageError as error:
            self._say_unsaved(error)

    def _note_saved(self, written: Written | None) -> None:
        if written is not None:
            self.saved_step = written.step
            self.stopping.took("save", written.seconds)

    def _say_unsaved(self, error: StorageError) -> None:
        kept = f"the checkpoint of step {self.saved_step:,} is untouched" if self.saved_step else "there is none yet"
        self.line.say(f"not saved: {error.what}; {kept}, and training goes on until the next save is due")

    def _begin_save(self) -> None:
        self.log.sync()
        tensors: dict[str, Mapping[str, Tensor]] = {
            "weights": self.weights.exact,
            "optimizer": _optimizer_tensors(self.weights, self.optimizers),
        }
        if self.moving is not None:
            tensors["moving"] = self.moving.tensors
        there = {*map(step_of, self.run.checkpoints()), self.step}
        self.stopped_at = [step for step in self.stopped_at if step in there]
        self.saver.begin(self.step, tensors, self.state(), self._keeping())

    def state(self) -> dict[str, Any]:
        """What a resumed run must know beside its tensors."""
        remembered = {name: getattr(self, name) for name in _REMEMBERED}
        belongs_to = {
            "data": self.prepared.fingerprint,
            "tokenizer": self.tokenizer,
            "model": dataclasses.asdict(self.config.model),
            "settings": {name: value for name, value in settings(self.config) if name not in MAY_CHANGE},
        }
        return {**remembered, "window": self.window.state(), "watch": self.watch.state(), **belongs_to}

    def finish(self) -> None:
        """Writes the final weights."""
        checkpoints, how = self._keeping().final(self.run.checkpoints()), self.config.training.final
        last = step_of(checkpoints[-1])
        if last != self._ends_at:
            self.line.say(f"the checkpoint of the best validation, step {self._ends_at:,}, is gone: the last is taken")
        elif last != self.step:
            self.line.say(f"the final weights are those of step {last:,}, whose validation was the best")
        write(self.run.final, {"weights": FINAL[how].weights(checkpoints)}, final_state(self.state(), how, last))

    @property
    def _ends_at(self) -> int:
        """The step whose weights the run would end with now: with patience, that of the best validation."""
        return self.step if self.config.training.patience is None or self.best_step is None else self.best_step

    def _keeping(self) -> Keeping:
        options = self.config.training
        return Keeping(
            last=max(options.keep_checkpoints, options.average_checkpoints),
            best_step=self.best_step,
            ends_at=self._ends_at,
            made_of=FINAL[options.final].count(options),
            passing=frozenset(self.stopped_at).difference([self.step] if self.done else []),
        )

    def _prefetched(self) -> Iterator[PairBatch]:
        """The batches of the steps to come, the next one made while the last one is computed with."""
        steps = range(self.step, self.config.training.steps)

        def make(step: int) -> PairBatch:
            batch = self.batches.of_step(step)
            return batch.pinned() if self.device.type == "cuda" else batch

        with ThreadPoolExecutor(1) as maker:
            coming = deque(maker.submit(make, step) for step in steps[:_AHEAD])
            for step in steps:
                batch = coming.popleft().result()
                coming.append(maker.submit(make, step + _AHEAD))
                yield batch


def _moving_average(config: Config, weights: Weights, saved: Saved | None) -> MovingAverage | None:
    if config.training.final != "moving":
        return None
    moving = MovingAverage(weights.exact, config.training.moving_average)
    if saved is not None:
        for name, tensor in moving.tensors.items():
            tensor.copy_(saved.tensors["moving"][name])
    return moving


def _restore(saved: Saved, weights: Weights, optimizers: list[torch.optim.Optimizer]) -> None:
    try:
        weights.load(saved.tensors["weights"])
        remembered: dict[str, dict[str, Tensor]] = {name: {} for name in weights.exact}
        for key, tensor in saved.tensors["optimizer"].items():
            name, what = key.rsplit("/", 1)
            remembered[name][what] = tensor.to(weights.exact[name].device)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    optimizer.state[parameter] = remembered[weights.name(parameter)]
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(f"{saved.directory} does not fit the model of its run's config.json") from error


def _optimizer_tensors(weights: Weights, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """What the optimizers remember of each parameter, by name."""
    return {
        f"{weights.name(parameter)}/{what}": tensor
        for optimizer in optimizers
        for parameter, state in optimizer.state.items()
        for what, tensor in state.items()
    }
