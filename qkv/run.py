"""A run directory: what a run has decided, learned and logged, written so that a crash leaves nothing half done.

run/config.json            every setting
run/tokenizer.model        text <-> ids
run/data/                  the prepared corpus, where training prepared it
run/data.path              where it is, where it was prepared elsewhere
run/log.jsonl              one JSON object a report
run/checkpoints/step-N/    weights, optimizer and training state after step N, with a manifest
run/start/                 the weights it began with, where these are another's, and what that knew besides
run/final/                 the finished run's weights, with a manifest
run/lock                   held by the process that writes to the run
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from qkv.checkpoint import Saved, Tensors, average, final_state, read, read_state, step_of, write
from qkv.config import Config, ModelConfig
from qkv.directories import CONFIG, LOG, TOKENIZER, require_run
from qkv.errors import CheckpointError, ConfigError
from qkv.progress import warn
from qkv.settings import from_json, settings, to_json
from qkv.storage import append_regular, claim, explained, is_claimed, read_regular, remove, write_atomically

MAY_CHANGE = {
    "training.steps", "training.save_every", "training.keep_checkpoints", "training.validate_every",
    "training.validation_sentences", "training.report_every", "training.patience", "training.average_checkpoints",
    "training.tolerated_bad_steps", "training.tolerated_rise", "training.rollbacks", "training.device",
    "training.parallel", "training.accumulate", "training.kernels", "training.tensorboard",
    "training.learning_rate", "training.warmup_steps", "training.clip",
    "text.source_language", "text.target_language",
    "search.beam", "search.length_penalty", "search.extra_length", "search.batch_tokens", "search.longest_source",
}  # fmt: skip
"""Settings that a run may go on with other values of: what was learned so far stays true."""

_LARGEST_CONFIG = 1 << 20
_LONGEST_PATH = 1 << 16


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """A directory that holds a run."""
        require_run(path)
        return cls(path)

    @property
    def config_file(self) -> Path:
        return self.path / CONFIG

    @property
    def tokenizer_file(self) -> Path:
        return self.path / TOKENIZER

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def data_note(self) -> Path:
        return self.path / "data.path"

    @property
    def learned_from(self) -> Path:
        """The directory of the data it learned from: its own, or where that was when it last trained."""
        with contextlib.suppress(OSError, ValueError):
            if not self.data.is_dir():
                return Path(os.fsdecode(read_regular(self.data_note, _LONGEST_PATH)))
        return self.data

    @property
    def log(self) -> Path:
        return self.path / LOG

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def start(self) -> Path:
        return self.path / "start"

    @property
    def final(self) -> Path:
        return self.path / "final"

    def config(self) -> Config:
        try:
            return from_json(read_regular(self.config_file, _LARGEST_CONFIG).decode())
        except (ConfigError, ValueError) as error:
            raise CheckpointError(f"{self.config_file} is damaged, or not a run's: {error}") from error

    @property
    def learned(self) -> bool:
        """Whether there is something that training has made."""
        return bool(self.checkpoints()) or self.final.is_dir()

    @property
    def finished(self) -> bool:
        """Whether it has final weights that no checkpoint is newer than."""
        newest = max(map(step_of, self.checkpoints()), default=0)
        with contextlib.suppress(CheckpointError):
            return self.final.is_dir() and bool(read_state(self.final).get("step", newest) >= newest)
        return False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside, no other process writes to this run; the lock goes with the process, however that ends."""
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with explained(self.lock):
            lock = append_regular(self.lock)
        with lock:
            try:
                claim(lock)
            except BlockingIOError as error:
                raise ConfigError(f"another process is at work on {self.path} right now; wait for it") from error
            yield

    @property
    def busy(self) -> bool:
        """Whether a process is at work on the run right now."""
        return is_claimed(self.lock)

    def require_free(self) -> None:
        """Tells at once where the run cannot be written, or is being written to; touches nothing."""
        with explained(self.path):
            place = next(one for one in (self.path, *self.path.parents) if one.exists())
            refusals = {
                errno.ENOTDIR: not place.is_dir(),
                errno.EROFS: os.statvfs(place).f_flag & os.ST_RDONLY,
                errno.EACCES: not os.access(place, os.W_OK | os.X_OK, effective_ids=True),
            }
            for number in (number for number, refused in refusals.items() if refused):
                raise OSError(number, os.strerror(number))
        if self.lock.exists():
            with self.held():
                pass

    def check(self, config: Config) -> None:
        """Tells at once where a run that has learned something already cannot go on with these settings."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"not a directory: {self.path}; give --output a new one")
        # Also where nothing was learned yet: it may be somebody else's config.json.
        kept = self.config() if self.config_file.exists() else None
        directory, state = self.newest_state()
        before = {f"model.{name}": value for name, value in state.get("model", {}).items()}
        if kept is not None:
            self.require_model(kept.model, directory, state)
            before = dict(settings(kept))
        if self.learned:
            now = dict(settings(config))
            changed = [name for name in before if now[name] != before[name] and name not in MAY_CHANGE]
            if changed:
                differences = ", ".join(f"{name} was {before[name]}, now {now[name]}" for name in changed)
                raise ConfigError(f"{self.path} was begun with other settings ({differences}); use another --output")

    def settled(self, config: Config) -> Config:
        """The settings, with the batch that this run has found to fit where that is left to it."""
        if config.training.tokens_per_batch != "auto":
            return config
        _, state = self.newest_state()
        found = state.get("settings", {}).get("training.tokens_per_batch")
        if found is None and self.config_file.exists():
            kept = self.config()
            # A run that has learned nothing yet and is begun again with other settings finds out anew.
            if self.learned or kept.with_changes(training={"tokens_per_batch": "auto"}) == config:
                found = kept.training.tokens_per_batch
        return config if found is None else config.with_changes(training={"tokens_per_batch": found})

    def require_model(self, model: ModelConfig, directory: Path, state: Mapping[str, Any]) -> None:
        """The settings of the model must be those its weights were learned with: many change no tensor's shape."""
        now = dataclasses.asdict(model)
        # What this version knows and an older one did not had its default then.
        learned = {**dataclasses.asdict(ModelConfig()), **state["model"]} if "model" in state else now
        changed = ", ".join(
            f"model.{name} from {learned[name]} to {now[name]}" for name in now if learned[name] != now[name]
        )
        if changed:
            raise CheckpointError(
                f"{self.config_file} was changed since {directory.name} was written: {changed}; change that back"
            )

    def require_settings(self, config: Config, saved: Saved) -> None:
        """A checkpoint must have been written under the settings that are to go on."""
        now = dict(settings(config))
        before = saved.state.get("settings", {})
        changed = [name for name in before if name in now and now[name] != before[name] and name not in MAY_CHANGE]
        if changed:
            differences = ", ".join(f"{name} was {before[name]}, now {now[name]}" for name in changed)
            raise CheckpointError(
                f"{saved.directory} was written by a run with other settings ({differences}); "
                "use another --output, or remove it"
            )

    def newest_state(self) -> tuple[Path, dict[str, Any]]:
        """The newest state that can be read, and where; whether the tensors beside it are sound is not looked at."""
        for directory in [*reversed(self.checkpoints()), self.final]:
            with contextlib.suppress(CheckpointError):
                return directory, read_state(directory)
        return self.final, {}

    def begin(self, config: Config) -> None:
        """Keeps the settings; those of a run that has learned something may change only where that does no harm."""
        self.check(config)
        write_atomically(self.config_file, to_json(config).encode())

    def remember(self, data: Path) -> None:
        """Keeps where the data lies that it learns from, where that is elsewhere."""
        if data.resolve() != self.data.resolve():
            write_atomically(self.data_note, os.fsencode(data.resolve()))

    def checkpoints(self) -> list[Path]:
        """The checkpoints there are, oldest first."""
        place = self.path / "checkpoints"
        # Not by a pattern: a directory that may not be read would look like an empty one.
        found = place.iterdir() if place.is_dir() else ()
        named = (path for path in found if re.fullmatch(r"step-[0-9]+", path.name))
        return sorted((path for path in named if path.is_dir() and not path.is_symlink()), key=step_of)

    def newest_sound_checkpoint(self, *, weights_only: bool = False) -> Saved | None:
        """The newest checkpoint that is what its manifest says, if there are any; damaged ones are named."""
        checkpoints = self.checkpoints()
        for directory in reversed(checkpoints):
            try:
                saved = read(directory, weights_only=weights_only)
                if saved.state.get("step") != step_of(directory):
                    raise CheckpointError(f"{directory} is damaged: it holds step {saved.state.get('step')}")
                return saved
            except CheckpointError as error:
                warn(str(error))
        if checkpoints:
            raise CheckpointError(
                f"all checkpoints in {self.path / 'checkpoints'} are damaged; put a sound one there, "
                "or remove them to begin again"
            )
        return None

    def save(self, step: int, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> None:
        """Writes the checkpoint of a step, which is the newest from then on."""
        written = self.path / "checkpoints" / f"step-{step:07}"
        write(written, tensors, state)
        # A later one is damaged, or training would have gone on from it.
        self.keep_only(path for path in self.checkpoints() if step_of(path) <= step)
        for left_over in written.parent.glob("step-*.tmp"):
            with contextlib.suppress(OSError):
                remove(left_over)

    def keep_only(self, wanted: Iterable[Path]) -> None:
        """Removes all checkpoints but these, the newest first."""
        for unwanted in sorted({*self.checkpoints()}.difference(wanted), key=step_of, reverse=True):
            # Renamed first: what is removed by half is not taken for a checkpoint.
            aside = unwanted.with_name(unwanted.name + ".tmp")
            try:
                remove(aside)
                remove(unwanted.rename(aside))
            except OSError as error:
                # What cannot be tidied away costs room, and no training.
                warn(f"{unwanted} is not needed any more and cannot be removed: {error.strerror}")

    def average_last(self, count: int) -> list[int]:
        """Makes the mean of the newest checkpoints the final weights; tells their steps."""
        if count < 1:
            raise ConfigError(f"cannot average {count} checkpoints; give 1 or more")
        with self.held():
            chosen = self.checkpoints()[-count:]
            if len(chosen) < count:
                raise ConfigError(f"{self.path} has {len(chosen)} checkpoints, fewer than {count}")
            state = final_state(read_state(chosen[-1]), "checkpoints", step_of(chosen[-1]))
            write(self.final, {"weights": average(chosen)}, state)
        return [step_of(path) for path in chosen]

    def weights(self) -> Saved:
        """The final weights, or the newest checkpoint's while there are none, or older ones of a run that goes on."""
        checkpoints = self.checkpoints()
        if self.final.is_dir():
            newest = max(map(step_of, checkpoints), default=0)
            try:
                if read_state(self.final).get("step", newest) >= newest:
                    return read(self.final, weights_only=True)
            except CheckpointError as error:
                if not checkpoints:
                    raise
                raise CheckpointError(f"{error}; the command that trained {self.path} makes it anew") from error
        saved = self.newest_sound_checkpoint(weights_only=True)
        if saved is None:
            raise CheckpointError(f"{self.path} has no weights yet; train it first")
        return saved
