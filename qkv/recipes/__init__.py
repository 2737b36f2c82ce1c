"""Named configurations: functions returning a Config, found by name."""

from __future__ import annotations

from collections.abc import Callable

from qkv.config import Config
from qkv.errors import UnknownNameError
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
        raise UnknownNameError("recipe", name, RECIPES, listed_by="qkv recipes")
    return RECIPES[name]()
