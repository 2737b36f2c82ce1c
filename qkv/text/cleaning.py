"""Cleaning parallel text: what every line is mended of, and the rules by which a pair is left out.

A line is mended by `normalise`, which translating uses too, so that the model meets the same kind of text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from qkv.config import DataConfig
from qkv.text.files import RawPair

RATIO_SLACK = 20
"""Bytes the longer side may have beyond the ratio, so that a short line is not judged by its script."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = "\ufeff"
# White space among the control characters is folded, not removed: it stood between words.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_WHITE_SPACE = re.compile(r"\s+")
_FOLDED = re.compile(r"[^\S ]|\s\s")


class Pair(NamedTuple):
    """A source sentence and its translation, mended."""

    source: str
    target: str


Rule = Callable[[Pair, DataConfig], bool]

RULES: Mapping[str, Rule] = {
    "empty": lambda pair, _: not pair.source or not pair.target,
    "too long": lambda pair, data: max(map(_bytes, pair)) > data.max_bytes,
    "copy of the source": lambda pair, data: not data.keep_copies and pair.source == pair.target,
    "length ratio": lambda pair, data: max(map(_bytes, pair)) - RATIO_SLACK > data.max_ratio * min(map(_bytes, pair)),
}
"""Each rule is true of a pair that is left out for it; the first that is true gives the reason."""

UNUSABLE = ("empty", "too long")
"""The rules that hold for validation and test text too, which is otherwise taken as it comes."""

FAULTS = ("missing column", "too long", "broken UTF-8", "NUL character")
"""What makes a raw line unusable before any rule is asked."""

REPAIRS: Mapping[str, str] = {
    "carriage return": "taken off the end",
    "byte-order mark": "removed",
    "control character": "removed",
    "white space": "made single spaces, none at the ends",
    "composition": "made NFC",
    "more columns": "only the first two are read",
}
"""What a line may be mended of, and how."""


def normalise(text: str) -> str:
    """Text as the model knows it: NFC, single spaces, nothing at the ends, no control characters or lone surrogates."""
    if text.isascii() and text.isprintable():
        return _fold(text)
    text = _LONE_SURROGATE.sub("\ufffd", text)
    text = _CONTROL.sub("", text.replace(_BYTE_ORDER_MARK, ""))
    return unicodedata.normalize("NFC", _fold(text))


def clean(raw: RawPair, data: DataConfig, rules: Mapping[str, Rule], repairs: Counter[str]) -> Pair | str:
    """The pair mended, or the name of what it is left out for; counts the repairs of the pairs that stay."""
    if raw.fault is not None:
        return raw.fault
    if b"\0" in raw.source or b"\0" in raw.target:
        return "NUL character"
    try:
        source, target = raw.source.decode(), raw.target.decode()
    except UnicodeDecodeError:
        return "broken UTF-8"
    pair = Pair(normalise(source), normalise(target))
    for name, rule in rules.items():
        if rule(pair, data):
            return name
    for before, after in ((source, pair.source), (target, pair.target)):
        if before != after:
            repairs.update(_repairs(before))
    if raw.more_columns:
        repairs["more columns"] += 1
    return pair


def _repairs(text: str) -> list[str]:
    """The names of the repairs that a text needs."""
    stripped = text.removesuffix("\r")
    visible = _CONTROL.sub("", stripped.replace(_BYTE_ORDER_MARK, ""))
    needed = {
        "carriage return": stripped != text,
        "byte-order mark": _BYTE_ORDER_MARK in text,
        "control character": _CONTROL.search(text) is not None,
        "white space": visible != visible.strip() or _FOLDED.search(visible) is not None,
        "composition": not unicodedata.is_normalized("NFC", visible),
    }
    return [name for name, is_needed in needed.items() if is_needed]


def _fold(text: str) -> str:
    # Most lines are clean: looking is several times quicker than rewriting.
    if _FOLDED.search(text):
        text = _WHITE_SPACE.sub(" ", text)
    return text.strip()


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
