"""Which values a setting may take: of what kind, within what bounds, and how they are read from text."""

from __future__ import annotations

import functools
import math
import types
import typing
from typing import Any, Literal

from qkv.errors import ConfigError

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", types.NoneType: "none"}


def at_least(least: int, name: str, value: float) -> None:
    if value < least:
        raise ConfigError(f"{name} is {value}; it must be at least {least}")


def within(least: int, most: int, name: str, value: int) -> None:
    """For what memory is taken by: the most is far beyond use, and far below what would bring a machine down."""
    at_least(least, name, value)
    if value > most:
        raise ConfigError(f"{name} is {value}; it must be at most {most}")


def between(low: int, high: int, name: str, value: float) -> None:
    if not low <= value < high:
        raise ConfigError(f"{name} is {value}; it must be at least {low} and below {high}")


def require_finite(section: str, part: Any) -> None:
    """What is not a number is neither too small nor too large, and so would pass every comparison."""
    floats = _names_of_floats(part.__class__)
    for name, value in vars(part).items():
        is_float = isinstance(value, float) or (isinstance(value, int) and name in floats)
        if is_float and not _finite(value):
            kind = typing.get_type_hints(part.__class__)[name]
            raise ConfigError(f"{section}.{name} takes {describe(kind)}, not {value!r}")


def make_floats(section: Any) -> None:
    """A whole number given for a setting that need not be one is a float all the same: libraries ask which it is."""
    for name in _names_of_floats(section.__class__):
        value = getattr(section, name)
        if isinstance(value, int):
            object.__setattr__(section, name, float(value))


def fits(value: Any, kind: Any) -> bool:
    for alternative in _alternatives(kind):
        if typing.get_origin(alternative) is Literal:
            if value in typing.get_args(alternative):
                return True
        elif alternative is float:
            if isinstance(value, (int, float)) and not isinstance(value, bool) and _finite(value):
                return True
        elif isinstance(value, alternative) and (alternative is bool or not isinstance(value, bool)):
            return True
    return False


def parse(name: str, text: str, kind: Any) -> Any:
    candidates: list[Any] = [_WORDS[text.lower()]] if text.lower() in _WORDS else []
    for number in (int, float, _whole_number):
        try:
            candidates.append(number(text.replace("_", "")))
        except ValueError:
            continue
    for candidate in [*candidates, text]:
        if fits(candidate, kind):
            return candidate
    raise ConfigError(f"{name} takes {describe(kind)}, not {text!r}")


def _whole_number(text: str) -> int:
    """The whole number that `1e3` is; beyond 2^53 such a number is no longer exact."""
    number = float(text)
    if not number.is_integer() or abs(number) > 1 << 53:
        raise ValueError(text)
    return int(number)


def describe(kind: Any) -> str:
    return " or ".join(
        ", ".join(typing.get_args(one)) if typing.get_origin(one) is Literal else _KINDS[one]
        for one in _alternatives(kind)
    )


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number that is too large for one that need not be whole.
        return False


@functools.cache
def _names_of_floats(kind: type[Any]) -> list[str]:
    hints = typing.get_type_hints(kind)
    return [name for name, hint in hints.items() if float in _alternatives(hint)]
