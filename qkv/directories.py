"""What runs, exported models and prepared data call their files, and which directory is a run's or a model's."""

from __future__ import annotations

from pathlib import Path

from qkv.errors import ConfigError
from qkv.manifest import MANIFEST

CONFIG = "config.json"
"""What every run and every exported model has."""
TOKENIZER = "tokenizer.model"
"""These too, and prepared data."""
LOG = "log.jsonl"
"""What a run reports."""
WEIGHTS = "weights.safetensors"
"""In each of its checkpoints, and in what is final."""


def was_exported(path: Path) -> bool:
    """Whether a directory holds an exported model, be it damaged: a run has none of these files."""
    return (path / MANIFEST).is_file() or any(path.glob("*.onnx"))


def require_run(path: Path, remedy: str = "name one that `qkv train` has made") -> None:
    """Refuses what is no run directory; it needs no torch, so that who has none hears of a wrong name first."""
    if was_exported(path):
        raise ConfigError(f"{path} is an exported model; this needs the run that it was exported from")
    if not path.is_dir():
        raise ConfigError(f"{'not a' if path.exists() else 'no such'} run directory: {path}; {remedy}")
    if not (path / CONFIG).is_file():
        raise ConfigError(f"{path} is not a run directory: it has no {CONFIG}; {remedy}")
