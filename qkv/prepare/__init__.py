"""From parallel text to ids on disk: clean, split, learn the vocabulary, encode; streaming, on every core."""

from __future__ import annotations

from qkv.prepare.directory import Prepared
from qkv.prepare.pipeline import prepare

__all__ = ["Prepared", "prepare"]
