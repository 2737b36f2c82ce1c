"""What was learned after a step: tensors and a state, with a SHA-256 of every file, whole or not there at all."""

from __future__ import annotations

import errno
import json
import platform
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

import qkv
from qkv.directories import WEIGHTS
from qkv.errors import CheckpointError
from qkv.manifest import as_json, digest, read_json_text, read_manifest, verified, write_manifest
from qkv.progress import warn
from qkv.storage import replacing_directory

Tensors = Mapping[str, Tensor]

SHORTLIST = "shortlist"
"""Tensors beside weights that came from an exported model: which subwords it expects."""
BEGAN_WITH = "began_with"
"""In a state: what is known of the weights with which the run began, where these are another's."""

_BESIDE_TENSORS = 1 << 16
"""Bytes of a checkpoint that are no tensors, at most: its JSON files and the heads of the others."""
_STATE = "state.json"
_NUMBER = (int, float)
_KINDS: dict[str, tuple[type, ...]] = {
    "step": (int,), "seconds": _NUMBER, "skipped": (int,), "bad_steps": (list,), "best_loss": (*_NUMBER, NoneType),
    "best_step": (int, NoneType), "validations_since_best": (int,), "passing": (list,), "unvalidated": (bool,),
    "validation_seconds": _NUMBER, "rollbacks": (int,), "rate_factor": _NUMBER, "window": (dict,), "watch": (dict,),
    "model": (dict,), "settings": (dict,), "data": (str,), "tokenizer": (str,), BEGAN_WITH: (dict,),
}  # fmt: skip
"""What a state says, in values of these kinds."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint or the final weights, read and verified."""

    directory: Path
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was written."""
    return int(checkpoint.name[5:])


def write(directory: Path, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> None:
    """Writes tensors and state into a directory that appears only once everything in it is safely on disk."""
    needed = _BESIDE_TENSORS + sum(tensor.nbytes + 256 for group in tensors.values() for tensor in group.values())
    with replacing_directory(directory, needed) as place:
        (place / _STATE).write_text(as_json(state), encoding="utf-8")
        for name, group in tensors.items():
            whole = {key: tensor.detach().cpu().contiguous() for key, tensor in group.items()}
            _save(whole, place / f"{name}.safetensors")
            # The library lets nobody else read what it writes; a run is shared like its other files.
            shutil.copymode(place / _STATE, place / f"{name}.safetensors")
        write_manifest(place, _about(state))


def read(directory: Path, *, weights_only: bool = False) -> Saved:
    """What `write` wrote, verified against its manifest."""
    expected = read_manifest(directory)
    wanted = {_STATE, WEIGHTS} | {name for name in expected if not weights_only}
    paths = [verified(directory, name, expected) for name in sorted(wanted)]
    tensors = {path.stem: _load(path) for path in paths if path.suffix == ".safetensors"}
    return Saved(directory, tensors, read_state(directory))


def read_tensors(directory: Path, name: str) -> dict[str, Tensor]:
    """Of what `write` wrote the tensors of one name, verified likewise; none where there are none."""
    expected = read_manifest(directory)
    file = f"{name}.safetensors"
    return _load(verified(directory, file, expected)) if file in expected else {}


def _load(path: Path) -> dict[str, Tensor]:
    try:
        mapped = load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    # Copies: what is only mapped into memory would crash this process if somebody wrote over the file.
    return {key: tensor.clone() for key, tensor in mapped.items()}


def read_state(directory: Path) -> dict[str, Any]:
    """The state that `write` wrote, without the tensors."""
    path = verified(directory, _STATE, read_manifest(directory))
    try:
        state = json.loads(read_json_text(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} is damaged: it is not a JSON object")
    for name, kinds in _KINDS.items():
        if not isinstance(state.get(name, kinds[0]()), kinds):
            raise CheckpointError(f"{path} is damaged: its {name} is {str(state[name])[:40]!r}")
    return state


def _about(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint was written by, and what it belongs to."""
    belongs_to = {name: state[name] for name in ("data", "tokenizer") if name in state}
    if "settings" in state:
        belongs_to["settings"] = digest(state["settings"])
    return {
        "qkv": qkv.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "fingerprints": belongs_to,
    }


def sound(checkpoints: Iterable[Path]) -> list[Path]:
    """Those of the checkpoints that can be read; the others are named."""
    found = []
    for directory in checkpoints:
        try:
            read(directory, weights_only=True)
        except CheckpointError as error:
            warn(f"{error}; the final weights are made without it")
        else:
            found.append(directory)
    return found


def average(checkpoints: list[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' weights (section 6.1), which translates better than any one of them."""
    total: dict[str, Tensor] = {}
    for directory in checkpoints:
        for name, tensor in read(directory, weights_only=True).tensors["weights"].items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(checkpoints)).float() for name, tensor in total.items()}


def final_state(state: Mapping[str, Any], weights: str, weights_of_step: int) -> dict[str, Any]:
    """What is kept beside the final weights: when the run ended, what the weights belong to, how they were made."""
    named = ("step", "data", "tokenizer", "model", "settings", BEGAN_WITH)
    kept = {name: state[name] for name in named if name in state}
    return {**kept, "weights": weights, "weights_of_step": weights_of_step}


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        # What the file system said is hidden in the library's own words.
        number = errno.ENOSPC if "No space left" in str(error) else errno.EIO
        raise OSError(number, str(error)) from error
