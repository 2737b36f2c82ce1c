"""The training loop (section 5): what step n does depends on the settings and n alone, so a run can always go on."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from qkv.checkpoint import RunDirectory, Saved, final_state, read, step_of, write
from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.data.batches import Batches, Marks
from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.errors import CheckpointError, TrainingError
from qkv.models.build import build, hasten
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.prepare import Prepared
from qkv.storage import write_atomically
from qkv.training.averaging import FINAL, MovingAverage
from qkv.training.optimizer import build_optimizers, learning_rate
from qkv.training.parallel import require_rows, trained
from qkv.training.processes import Processes
from qkv.training.reports import Log, ProgressLine, Window
from qkv.training.step import Outcome, Step
from qkv.training.stopping import Stopping
from qkv.training.validation import Validation
from qkv.training.weights import KeptWeights

_NAMED_LINES = 5
_AHEAD = 3
"""Batches made while others are computed with."""
_SLOW_DISK = 50e6
"""Bytes a second that any disk writes, for as long as nothing was written to this one."""
_COPIES = 4
"""Tensors of a weight's size in a checkpoint, at most: itself, two moments and a moving average."""
_REMEMBERED = (
    "step", "seconds", "skipped", "bad_steps", "best_loss", "best_step", "validations_since_best", "stopped_at",
)  # fmt: skip


def train_run(
    config: Config, run: RunDirectory, prepared: Prepared, processes: Processes, *, deadline: float | None = None
) -> None:
    """Trains until the steps are done or it is to stop, going on from the newest checkpoint where there is one."""
    with ExitStack() as held:

        def claim() -> None:
            # A flipped byte in the ids would be learned without a word: reading them once is cheap beside training.
            prepared.verify()
            held.enter_context(run.held())
            require_same_data(run, prepared)
            run.begin(config)
            write_atomically(run.tokenizer_file, prepared.tokenizer().model)

        processes.by_first(claim)
        training = _Training.begin(config, run, prepared, processes, Stopping(deadline))
        try:
            if processes.by_first(training.finished):
                training.line.say(f"{run.path} is finished; to go on, set training.steps above {training.step}")
                return
            training.introduce()
            with training.stopping.listening():
                training.run_steps()
                if not training.done:
                    training.line.say(processes.by_first(lambda: training.stopping.explain(training.step)))
                    return
            processes.by_first(training.finish)
        except torch.OutOfMemoryError as error:
            raise TrainingError(
                f"the memory of {training.device} is full; --set training.accumulate="
                f"{2 * config.training.accumulate} needs about half as much of it for the same steps"
            ) from error
        finally:
            training.line.close()
            training.log.close()
    left_out = f"; {training.skipped:,} steps were left out" if training.skipped else ""
    training.line.say(f"finished after step {training.step:,}: {run.path}{left_out}")


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
    weights: KeptWeights
    optimizers: list[torch.optim.Optimizer]
    take_step: Step
    processes: Processes
    device: torch.device
    precision: torch.dtype
    log: Log
    line: ProgressLine
    moving: MovingAverage | None
    prepared: Prepared
    stopping: Stopping
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
    saved_step: int = 0
    """The step after which the newest checkpoint was written; before the first there is nothing to save."""
    asked_to_stop: bool = False
    all_stop: bool = False
    """Whether any of the processes had been asked to stop when the last step was begun whose outcome is known."""
    begun: _Begun | None = None
    """The step whose outcome has not been asked for yet."""
    clock: float = 0.0
    """When that began."""

    @classmethod
    def begin(
        cls, config: Config, run: RunDirectory, prepared: Prepared, processes: Processes, stopping: Stopping
    ) -> _Training:
        """A new run, or the one that the newest sound checkpoint tells of."""
        options = config.training
        tokenizer = prepared.tokenizer()
        marks = Marks(tokenizer.padding, tokenizer.begin, tokenizer.end)
        rows = options.tokens_per_batch // config.data.row_width
        width = config.data.row_width
        batches, held_out = (
            Batches(prepared.corpus(name), width=width, rows_a_step=rows, marks=marks, seed=options.seed)
            for name in ("train", "valid")
        )
        require_rows(rows, options, processes.count)
        device = processes.own_device(choose_device(options.device))
        processes.connect(device)
        model = build(config.model, tokenizer.size, seed=options.seed).to(device)
        precision = choose_precision(options.precision, device)
        fast = choose_kernels(options.kernels, device)
        if fast:
            hasten(model)
        model, weights, gradients = trained(options, model, precision, processes)
        products = {f"{name}.weight" for name, part in model.named_modules() if isinstance(part, nn.Linear)}
        optimizers = build_optimizers(options, weights.exact, products)
        saved = _newest(run, processes)
        if saved is not None:
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
            # What the library adds for several processes cannot be captured.
            take_step=Step(config, gradients, weights, optimizers, moving, captured=fast and processes.count == 1),
            processes=processes,
            device=device,
            precision=precision,
            log=Log(
                run.log, since_step=state.get("step", 0), tensorboard=options.tensorboard, silent=not processes.first
            ),
            line=ProgressLine(options.steps, silent=not processes.first),
            moving=moving,
            prepared=prepared,
            stopping=stopping,
            tokenizer=tokenizer.fingerprint,
        )
        for name in _REMEMBERED:
            setattr(training, name, state.get(name, getattr(training, name)))
        training.window = Window(state.get("window"))
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
            if self._to_stop():
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
            # With patience, the run may end with what is the best now.
            if self.at(options.save_every) or (options.patience is not None and self.best_step == self.step):
                self.save()
            if self.stopped_early:
                self.line.say(
                    f"stopped early: {options.patience} validations in a row were no better than that of step "
                    f"{self.best_step}"
                )
                break
            # What was done beside training is not its time.
            self.clock = time.perf_counter()
        if self.saved_step != self.step:
            self.save()

    def stop(self) -> None:
        """Saves the last step, so that training can go on right after it."""
        self.account()
        self.take_step.queue.wait()
        if self.saved_step != self.step:
            self.stopped_at.append(self.step)
            self.save()

    def _to_stop(self) -> bool:
        """Whether to stop before the next step: several do when a step has told all that one of them is to."""
        self.asked_to_stop = self.stopping.now(still_to_do=self._due_after(self.step + 1))
        return self.asked_to_stop if self.processes.count == 1 else self.all_stop

    def _due_after(self, step: int) -> tuple[str, ...]:
        """What is done after a step, if training stops there."""
        options = self.config.training
        validates = step % options.validate_every == 0 or step == options.steps
        return ("validation", "save") if validates else ("save",)

    def at(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.training.steps

    def pause(self) -> bool:
        """Whether this step is one after which something is to be told, tried or saved."""
        options = self.config.training
        return any(map(self.at, (options.report_every, options.validate_every, options.save_every)))

    def update(self, batch: PairBatch) -> None:
        """Starts the next step, then sees what has come of the one before."""
        self.step += 1
        begun = _Begun(
            self.step,
            batch.source_tokens,
            batch.target_tokens,
            self.take_step.begin(batch, self.step, stop=self.asked_to_stop),
        )
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
        self.all_stop = outcome.stop
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
            "learning_rate": learning_rate(self.config.training, self.config.model.width, begun.step),
            "gradient_norm": outcome.gradient_norm,
            "epoch": self.batches.epoch_at(begun.step),
        }
        self.line.step(begun.step, self.window.summary(), report=False)

    def _bad_step(self, step: int, outcome: Outcome) -> None:
        """Counts a step that was left out; too many in a row end the run, with the sentences named."""
        loss, norm = outcome.total, outcome.gradient_norm
        self.skipped += 1
        self.bad_steps.append(step)
        self.log.write("skipped", step, loss=repr(loss), gradient_norm=repr(norm))
        self.line.say(f"step {step:,} left out: loss {loss}, gradient norm {norm}")
        if len(self.bad_steps) < self.config.training.tolerated_bad_steps:
            return
        lines = {bad: self.prepared.places(self.batches.lines_of_step(bad - 1)) for bad in self.bad_steps}
        path = self.run.path / f"bad-step-{step}.json"
        self.processes.by_first(lambda: write_atomically(path, json.dumps({"lines of each step": lines}).encode()))
        some = ", ".join(lines[step][:_NAMED_LINES])
        raise TrainingError(
            f"{len(self.bad_steps)} steps in a row had a loss or gradient that is not finite, the last one step "
            f"{step:,} with {some}, …; all are named in {path}. Try a smaller "
            "training.learning_rate, more training.warmup_steps or training.clip=1; the last checkpoint is untouched"
        )

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
        with self.weights.replaced_by(self.weights.exact if self.moving is None else self.moving.tensors):
            values = self.processes.by_first(lambda: self.validation.run(self.model))
        self.stopping.took("validation", time.monotonic() - begun)
        self.log.write("validation", self.step, **values, seconds=self.seconds)
        self.line.validation(self.step, values)
        if values["loss"] < (math.inf if self.best_loss is None else self.best_loss):
            self.best_loss, self.best_step, self.validations_since_best = values["loss"], self.step, 0
        else:
            self.validations_since_best += 1

    def save(self) -> None:
        begun = time.monotonic()
        tensors: dict[str, Mapping[str, Tensor]] = {
            "weights": {name: self.weights.whole(name, one) for name, one in self.weights.exact.items()},
            "optimizer": _optimizer_tensors(self.weights, self.optimizers),
        }
        if self.moving is not None:
            tensors["moving"] = {name: self.weights.whole(name, one) for name, one in self.moving.tensors.items()}
        options = self.config.training
        keep = max(options.keep_checkpoints, options.average_checkpoints)

        def write_checkpoint() -> None:
            there = {*map(step_of, self.run.checkpoints()), self.step}
            self.stopped_at = [step for step in self.stopped_at if step in there]
            self.run.save(self.step, tensors, self.state())
            newest = self.run.checkpoints()[-1]
            self.run.keep_only([newest, *self._lasting_checkpoints()[-keep:], *self._final_checkpoints()])

        self.processes.by_first(write_checkpoint)
        self.saved_step = self.step
        self.stopping.took("save", time.monotonic() - begun)

    def state(self) -> dict[str, Any]:
        """What a resumed run must know beside its tensors."""
        remembered = {name: getattr(self, name) for name in _REMEMBERED}
        belongs_to = {
            "data": self.prepared.fingerprint,
            "tokenizer": self.tokenizer,
            "model": dataclasses.asdict(self.config.model),
        }
        return {**remembered, "window": self.window.state(), **belongs_to}

    def finish(self) -> None:
        """Writes the final weights."""
        checkpoints, how = self._final_checkpoints(), self.config.training.final
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

    def _final_checkpoints(self) -> list[Path]:
        """What the final weights are made of: the last checkpoints up to the step the run ends at."""
        checkpoints = self._lasting_checkpoints()
        if self._ends_at in map(step_of, checkpoints):
            checkpoints = [one for one in checkpoints if step_of(one) <= self._ends_at]
        return checkpoints[-FINAL[self.config.training.final].count(self.config.training) :]

    def _lasting_checkpoints(self) -> list[Path]:
        """Those that are there, but for where training only stopped: the run ends as if it had not."""
        passing = {*self.stopped_at}.difference([self.step] if self.done else [])
        return [one for one in self.run.checkpoints() if step_of(one) not in passing]

    def _prefetched(self) -> Iterator[PairBatch]:
        """The batches of the steps to come, the next one made while the last one is computed with."""
        steps = range(self.step, self.config.training.steps)

        def make(step: int) -> PairBatch:
            batch = self.batches.of_step(step, share=self.processes.rank, shares=self.processes.count)
            return batch.pinned() if self.device.type == "cuda" else batch

        with ThreadPoolExecutor(1) as maker:
            coming = deque(maker.submit(make, step) for step in steps[:_AHEAD])
            for step in steps:
                batch = coming.popleft().result()
                coming.append(maker.submit(make, step + _AHEAD))
                yield batch


def _newest(run: RunDirectory, processes: Processes) -> Saved | None:
    """The newest sound checkpoint; all processes read the one that the first has found sound."""
    if processes.count == 1:
        return run.newest_sound_checkpoint()
    found: list[Saved] = []

    def find() -> str | None:
        saved = run.newest_sound_checkpoint()
        found.extend([] if saved is None else [saved])
        return None if saved is None else str(saved.directory)

    directory = processes.by_first(find)
    if directory is None:
        return None
    return found[0] if found else read(Path(directory))


def _moving_average(config: Config, weights: KeptWeights, saved: Saved | None) -> MovingAverage | None:
    if config.training.final != "moving":
        return None
    moving = MovingAverage(weights.exact, config.training.moving_average)
    if saved is not None:
        for name, tensor in moving.tensors.items():
            tensor.copy_(weights.share(name, saved.tensors["moving"][name]))
    return moving


def _restore(saved: Saved, weights: KeptWeights, optimizers: list[torch.optim.Optimizer]) -> None:
    try:
        weights.load(saved.tensors["weights"])
        remembered: dict[str, dict[str, Tensor]] = {name: {} for name in weights.exact}
        for key, tensor in saved.tensors["optimizer"].items():
            name, what = key.rsplit("/", 1)
            remembered[name][what] = weights.share(name, tensor).to(weights.exact[name].device)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    optimizer.state[parameter] = remembered[weights.name(parameter)]
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(f"{saved.directory} does not fit the model of its run's config.json") from error


def _optimizer_tensors(weights: KeptWeights, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """What the optimizers remember of each parameter, by name."""
    return {
        f"{weights.name(parameter)}/{what}": weights.whole(weights.name(parameter), tensor)
        for optimizer in optimizers
        for parameter, state in optimizer.state.items()
        for what, tensor in state.items()
    }
