"""qkv: the Transformer of "Attention Is All You Need", from two text files to a measured translator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.config import Config
    from qkv.recipes import recipe
    from qkv.training import train
    from qkv.translate import Translation, Translator

__version__ = "0.1.0"

__all__ = [
    "Config",
    "QkvError",
    "Translation",
    "Translator",
    "__version__",
    "recipe",
    "train",
]

_HOMES = {
    "Config": "qkv.config",
    "Translation": "qkv.translate",
    "Translator": "qkv.translate",
    "recipe": "qkv.recipes",
    "train": "qkv.training",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when first asked for: importing qkv itself brings neither torch nor numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'qkv' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
