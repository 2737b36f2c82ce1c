"""What a run may learn on from: another run, or an exported model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qkv.checkpoint import SHORTLIST, Saved, final_state, read_state, read_tensors
from qkv.config import Config
from qkv.directories import TOKENIZER, require_run, was_exported
from qkv.engines.exported import read_settings
from qkv.engines.looks import Looks
from qkv.engines.shortlist import Shortlist
from qkv.engines.weights import read_exported
from qkv.errors import CheckpointError, ConfigError
from qkv.manifest import digest, read_manifest
from qkv.models.build import assemble
from qkv.run import RunDirectory
from qkv.settings import from_json, to_json
from qkv.text.subwords import Tokenizer

EXPORTED = "exported"
"""In the state beside weights: the digest of the exported model that they are of."""
_SETTINGS = "config"
"""There too: all settings of the first of those that learned on from one another."""
_FIRST_EXPORTED = "first_exported"


class First(NamedTuple):
    """What learned before anything was learned on."""

    config: Config
    exported: bool
    """Whether it is an exported model: then steps and rate are those of the new text, and not a tenth of its own."""

    def as_state(self) -> dict[str, Any]:
        return {_SETTINGS: json.loads(to_json(self.config)), _FIRST_EXPORTED: self.exported}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> First:
        return cls(from_json(json.dumps(state[_SETTINGS])), bool(state.get(_FIRST_EXPORTED)))


class Before(Protocol):
    """Weights, with the vocabulary and the settings that they belong to."""

    @property
    def path(self) -> Path: ...

    @property
    def tokenizer_file(self) -> Path: ...

    def config(self) -> Config:
        """As it translates now."""

    def first(self) -> First:
        """What it learned on from; itself, where that is nothing."""

    def weights(self) -> Saved:
        """Verified, with a state that tells what they belong to and where they are from; beside them what an exported
        model knows of its words."""


def before_at(path: Path) -> Before:
    """The run or the exported model of a directory."""
    if was_exported(path):
        return _Exported(path)
    require_run(path, "name one that `qkv train` has made, or a model of `qkv export`")
    return RunBefore(RunDirectory(path))


def looks_of(before: Before) -> Looks | None:
    """Which of its heads tell where words came from, if that was learned."""
    model = before.config().model
    return Looks.load(before.path, layers=model.decoder_layers, heads=model.heads)


class RunBefore:
    """A run: its final weights, or its newest checkpoint's."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    @property
    def path(self) -> Path:
        return self._run.path

    @property
    def tokenizer_file(self) -> Path:
        return self._run.tokenizer_file

    def config(self) -> Config:
        return self._run.config()

    def first(self) -> First:
        config, start = self.config(), self._run.start
        if not start.is_dir():
            return First(config, exported=False)
        try:
            first = First.of_state(read_state(start))
        except (KeyError, ConfigError) as error:
            raise CheckpointError(f"{start} is damaged: {error}") from error
        return first._replace(config=dataclasses.replace(config, training=first.config.training))

    def weights(self) -> Saved:
        if not self._run.learned:
            raise ConfigError(
                f"{self.path} has no weights that could be learned on from; name a run that `qkv train` has trained, "
                "or a model of `qkv export`"
            )
        saved = self._run.weights()
        state = saved.state
        self._run.require_model(self.config().model, saved.directory, state)
        step = state.get("weights_of_step", state.get("step", 0))
        kept = read_tensors(self._run.start, SHORTLIST) if self._run.start.is_dir() else {}
        return Saved(
            saved.directory,
            {"weights": saved.tensors["weights"], **({SHORTLIST: kept} if kept else {})},
            final_state(state, str(state.get("weights", "last")), step),
        )


class _Exported:
    """An exported model: numbers of 8 bits are as many times their scales."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tokenizer_file = path / TOKENIZER
        # Once: every file is verified for that.
        self._config = read_settings(path)

    def config(self) -> Config:
        return self._config

    def first(self) -> First:
        return First(self.config(), exported=True)

    def weights(self) -> Saved:
        model, tokenizer = self.config().model, Tokenizer.load(self.tokenizer_file)
        arrays, precision = read_exported(self.path, model)
        with torch.device("meta"):
            expected = assemble(model, tokenizer.size).state_dict()
        shapes = {name: tuple(tensor.shape) for name, tensor in expected.items()}
        fits = {name: array.shape for name, array in arrays.items()} == shapes
        if not fits or not all(np.isfinite(array).all() for array in arrays.values()):
            raise CheckpointError(
                f"{self.path} is damaged: its weights do not fit its config.json and tokenizer; export the run again"
            )
        state = {
            "tokenizer": tokenizer.fingerprint,
            "model": dataclasses.asdict(model),
            "weights": precision,
            EXPORTED: digest(read_manifest(self.path)),
        }
        tensors = {"weights": {name: _tensor(array, np.float32) for name, array in arrays.items()}}
        if Shortlist.is_in(self.path):
            known = Shortlist.load(self.path, tokenizer.size).arrays()
            tensors[SHORTLIST] = {name: _tensor(array, np.int32) for name, array in known.items()}
        return Saved(self.path, tensors, state)


def _tensor(array: NDArray[Any], kind: type[np.generic]) -> Tensor:
    # A copy: an array that was mapped from a file is not for writing.
    return torch.from_numpy(np.array(array, kind))
