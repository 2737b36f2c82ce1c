"""Named configurations: functions returning a Config, found by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from qkv.config import Config
from qkv.errors import ConfigError
from qkv.recipes import paper, small, student, variants

RECIPES: dict[str, Callable[[], Config]] = {
    "base": paper.base,
    "big": paper.big,
    "big-en-fr": paper.big_en_fr,
    **paper.TABLE_3,
    "pre-norm": variants.pre_norm,
    "rms-norm": variants.rms_norm,
    "rotary": variants.rotary,
    "gated": variants.gated,
    "query-key-norm": variants.query_key_norm,
    "modern": variants.modern,
    "fast": variants.fast,
    "student": student.student,
    "small": small.small,
    "tiny": small.tiny,
}


def recipe(name: str) -> Config:
    """The configuration of this name."""
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else "`qkv recipes` lists them"
        raise ConfigError(f"no recipe is called {name!r}; {hint}")
    return RECIPES[name]()
