"""Translators for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qkv import Translator
from qkv.config import SearchConfig
from qkv.engines.plain import PlainEngine
from qkv.models.build import build
from qkv.progress import warn
from qkv.text.subwords import Tokenizer
from qkv.translate.making import Makings
from tests.toy import QUICK


def untrained(
    data: Path,
    warnings: list[str] | None = None,
    *,
    seed: int = 1,
    right_to_left: bool = False,
    plain_marks: bool = False,
    **search: Any,
) -> Translator:
    """A model that writes nonsense, and seldom ends by itself."""
    tokenizer = Tokenizer.load(data / "tokenizer.model")
    model = build(QUICK.model, tokenizer.size, seed=seed)
    told = warn if warnings is None else warnings.append
    engine = PlainEngine(model.eval(), tokenizer.padding)
    return Translator(
        Makings.of(
            engine, tokenizer, SearchConfig(**search), right_to_left=right_to_left, plain_marks=plain_marks, warn=told
        )
    )
