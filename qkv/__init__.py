"""qkv: the Transformer of "Attention Is All You Need", from two text files to a measured translator."""

from __future__ import annotations

from qkv.errors import QkvError

__version__ = "0.1.0"

__all__ = ["QkvError", "__version__"]
