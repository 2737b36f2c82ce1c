"""Cleaning parallel text: what every line is mended of, and the rules by which a pair is left out.

A line is mended by `normalise`, which translating uses too, so that the model meets the same kind of text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from qkv.config import DataConfig
from qkv.text.files import Fault, RawPair, Side
from qkv.text.typography import is_printed, plain

RATIO_SLACK = 20
"""Bytes the longer side may have beyond the ratio, so that a short line is not judged by its script."""

_SIDES: tuple[Side, Side] = ("source", "target")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = "\ufeff"
# White space among the control characters is folded, not removed: it stood between words.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_WHITE_SPACE = re.compile(r"\s+")
_NO_LETTER = re.compile(r"[\W\d_]+")
_FOLDED = re.compile(r"[^\S ]|\s\s")


class Pair(NamedTuple):
    """A source sentence and its translation, mended."""

    source: str
    target: str


class Repair(NamedTuple):
    """What a line was mended of, on which side where that is one, and the text that this lost, where it is any."""

    rule: str
    side: Side | None
    lost: bytes = b""


class Mended(NamedTuple):
    """A pair that is used, and what it was mended of."""

    pair: Pair
    repairs: Sequence[Repair] = ()


SideRule = Callable[[str, DataConfig], bool]
PairRule = Callable[[Pair, DataConfig], bool]

SIDE_RULES: Mapping[str, SideRule] = {
    "empty": lambda text, _: not text,
    "too long": lambda text, data: _bytes(text) > data.max_bytes,
}
"""Each rule is true of a text whose pair is left out for it; they hold for validation and test text too."""

PAIR_RULES: Mapping[str, PairRule] = {
    "copy of the source": lambda pair, data: not data.keep_copies and pair.source == pair.target,
    "few letters": lambda pair, data: data.least_letters > 0 and min(map(_share_of_letters, pair)) < data.least_letters,
    "length ratio": lambda pair, data: max(map(_bytes, pair)) - RATIO_SLACK > data.max_ratio * min(map(_bytes, pair)),
}
"""Each rule is true of a pair that training leaves out for it; the first rule that is true gives the reason."""

REPAIRS: Mapping[str, str] = {
    "carriage return": "taken off the end",
    "byte-order mark": "removed",
    "control character": "removed",
    "white space": "made single spaces, none at the ends",
    "composition": "made NFC",
    "typography": "quotation marks and apostrophes made plain",
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


def plainly(text: str) -> str:
    """The same with plain quotation marks and apostrophes."""
    return plain(normalise(text))


READINGS: Mapping[str, Callable[[str], str]] = {"kept": normalise, "plain": plainly}
"""How a model reads text, by what `data.typography` says."""


def says_nothing(text: str) -> bool:
    """Whether there is nothing in a text but white space and characters that nobody sees, such as U+200B."""
    return all(character.isspace() or unicodedata.category(character) == "Cf" for character in text)


def clean(raw: RawPair, data: DataConfig, rules: Mapping[str, PairRule]) -> Mended | Fault:
    """The pair mended, or what a rule of a side or one of `rules` leaves it out for."""
    if raw.fault is not None:
        return raw.fault
    source, target = _decoded(raw.source, "source"), _decoded(raw.target, "target")
    if isinstance(source, Fault):
        return source
    if isinstance(target, Fault):
        return target
    read = READINGS[data.typography]
    pair = Pair(read(source), read(target))
    for name, side_rule in SIDE_RULES.items():
        for side, text in zip(_SIDES, pair, strict=True):
            if side_rule(text, data):
                return Fault(name, side)
    for name, rule in rules.items():
        if rule(pair, data):
            return Fault(name, None)
    if raw.further is None and pair == (source, target):
        return Mended(pair)
    made_plain = data.typography == "plain"
    repairs = [
        *_repairs(source, "source", made_plain=made_plain),
        *_repairs(target, "target", made_plain=made_plain),
    ]
    if raw.further is not None:
        repairs.append(Repair("more columns", None, raw.further))
    return Mended(pair, repairs)


def _decoded(text: bytes, side: Side) -> str | Fault:
    if b"\0" in text:
        return Fault("NUL character", side)
    try:
        return text.decode()
    except UnicodeDecodeError:
        return Fault("broken UTF-8", side)


def _repairs(text: str, side: Side, *, made_plain: bool) -> Iterator[Repair]:
    """The repairs that a text needs."""
    stripped = text.removesuffix("\r")
    visible = _CONTROL.sub("", stripped.replace(_BYTE_ORDER_MARK, ""))
    needed = {
        "carriage return": stripped != text,
        "byte-order mark": _BYTE_ORDER_MARK in text,
        "control character": _CONTROL.search(text) is not None,
        "white space": visible != visible.strip() or _FOLDED.search(visible) is not None,
        "composition": not unicodedata.is_normalized("NFC", visible),
        "typography": made_plain and is_printed(visible),
    }
    return (Repair(rule, side) for rule, is_needed in needed.items() if is_needed)


def _fold(text: str) -> str:
    # Most lines are clean: looking is several times quicker than rewriting.
    if _FOLDED.search(text):
        text = _WHITE_SPACE.sub(" ", text)
    return text.strip()


def _share_of_letters(text: str) -> float:
    return len(_NO_LETTER.sub("", text)) / max(1, len(text) - text.count(" "))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
