"""An exported model as one that can be translated with; neither torch nor the library of the export is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from qkv.config import Config
from qkv.directories import CONFIG, TOKENIZER
from qkv.engines.looks import Looks
from qkv.errors import CheckpointError, ConfigError
from qkv.manifest import MANIFEST, read_manifest, verified
from qkv.search.engine import Engine
from qkv.settings import from_json
from qkv.text.subwords import Tokenizer

_GRAPH = "step.onnx"
_NEEDED = {CONFIG, TOKENIZER, "vectors.npy", "scale.npy", "encoder.onnx", _GRAPH}
"""Files that no exported model is without."""


class Exported(NamedTuple):
    engine: Engine[Any]
    tokenizer: Tokenizer
    config: Config
    looks: Looks | None
    """Which heads its graphs tell of."""


def is_exported(path: Path) -> bool:
    """Whether a directory holds an exported model, and not a run."""
    return (path / MANIFEST).is_file() and (path / _GRAPH).is_file()


def read_settings(path: Path) -> Config:
    """The settings of what `qkv export` wrote, every file of it verified."""
    files = read_manifest(path)
    for name in sorted(_NEEDED.union(files)):
        verified(path, name, files)
    try:
        return from_json((path / CONFIG).read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError, OSError) as error:
        raise CheckpointError(f"{path / CONFIG} is damaged: {error}") from error


def load_exported(path: Path) -> Exported:
    """What `qkv export` wrote, every file of it verified."""
    # Only who translates with an exported model waits for the runtime.
    from qkv.engines.onnx import OnnxEngine
    from qkv.engines.side_by_side import SideBySide

    config = read_settings(path)
    tokenizer = Tokenizer.load(path / TOKENIZER)
    looks = Looks.load(path, layers=config.model.decoder_layers, heads=config.model.heads)
    engine = OnnxEngine(path, looks_when_read=looks is not None and looks.when_read)
    if engine.vocabulary != tokenizer.size:
        raise CheckpointError(f"{path} is damaged: its tokenizer is not the one that its model has learned with")
    return Exported(SideBySide(engine), tokenizer, config, looks)
