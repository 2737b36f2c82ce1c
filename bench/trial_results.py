"""What came of trials: a file with one JSON object a line, and what a table tells of it."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError

_FAILED = {"name", "asked", "error"}
_BEGINS = '{"name": '
"""How a line of results begins."""
_FOUND = {"name", "asked", "steps", "seconds", "tokens_per_second", "nll", "bleu", "note"}
"""What the table says of a trial, at the least."""


def results_in(path: Path) -> list[dict[str, Any]]:
    """What a file of results says; the last line may be half a line, where a machine was taken away."""
    try:
        found: list[Any] = [json.loads(line) for line in _whole_lines(path)]
    except ValueError as error:
        raise ConfigError(f"{path} is no file of results, which has one JSON object a line: {error}") from error
    if not all(isinstance(one, dict) and (_failed(one) or _whole(one)) for one in found):
        raise ConfigError(f"{path} is no file of results: not every line says what came of a trial")
    return found


def drop_half_a_line(path: Path) -> None:
    """So that the next result begins a line; what is no result is left alone."""
    if not path.exists():
        return
    whole = "".join(_whole_lines(path)).encode()
    half = path.read_bytes()[len(whole) :].decode(errors="replace")
    if not half.startswith(_BEGINS[: len(half)]):
        raise ConfigError(f"{path} is no file of results: it ends with {half[:40]!r}")
    os.truncate(path, len(whole))


def table(some: list[dict[str, Any]]) -> str:
    """In Markdown, the best first and those that failed last; what cannot be compared is in tables of its own."""
    head = "| recipe | steps | seconds of steps | tokens/s | nll | BLEU | |\n|---|---|---|---|---|---|---|"
    tables = []
    for about, rows in itertools.groupby(sorted(some, key=_about), key=_about):
        ordered = sorted(rows, key=lambda one: one.get("nll", float("inf")))
        tables.append("\n".join([": ".join(filter(None, about[1:])), "", head, *map(row, ordered)]))
    return "\n\n".join(tables)


def row(result: dict[str, Any]) -> str:
    if "error" in result:
        why = " ".join(str(result["error"]).split()).replace("|", "\\|")
        return f"| {result['name']} | | | | | | {why} |"
    bleu = "" if result["bleu"] is None else f"{result['bleu']:.2f}"
    return (
        f"| {result['name']} | {result['steps']:,} | {result['seconds']:.1f} of {result['asked']:g} | "
        f"{result['tokens_per_second']:,.0f} | {result['nll']:.3f} | {bleu} | {result['note']} |"
    )


def _whole_lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith("\n")]


def _failed(result: dict[str, Any]) -> bool:
    return result.keys() >= _FAILED and isinstance(result["asked"], int | float)


def _whole(result: dict[str, Any]) -> bool:
    """Whether it has all that a row tells; only BLEU may be unknown."""
    numbers = ("asked", "steps", "seconds", "tokens_per_second", "nll")
    return (
        result.keys() >= _FOUND
        and all(isinstance(result[name], int | float) for name in numbers)
        and isinstance(result["bleu"], int | float | None)
        and isinstance(result.get("set", []), list)
    )


def _about(result: dict[str, Any]) -> tuple[float, str, str, str]:
    """What two results must have in common to be compared: the time, the settings, the data, and the code."""
    named = {
        "data": str(result.get("beside", result.get("data", "")))[:12],
        "commit": result.get("commit", ""),
        "on": result.get("device", ""),
    }
    told = ", ".join(f"{name} {value}" for name, value in named.items() if value)
    return result["asked"], f"{result['asked']:g} s", " ".join(map(str, result.get("set", ()))), told
