"""Checks that names tell the truth: a tensor called `x_RWD` has three dimensions, and R is one number in a function."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy
import torch

import qkv

_LAYERS = Path(qkv.__file__).parent / "layers" / "__init__.py"
# At least one capital, so that `beta_1` is a name like any other; no capital before it, so that `MAX_SIZE` is.
_SUFFIX = re.compile(r"_*[a-z][a-z0-9_]*_((?=1*[A-Z])[A-Z1]+)")

_PARTS = 8


class ShapeError(AssertionError):
    """Names that do not tell the truth about their tensors."""


def legend(source: str | None = None) -> frozenset[str]:
    """The letters that the docstring of `qkv.layers` explains, and 1."""
    text = ast.get_docstring(ast.parse(source or _LAYERS.read_text()), clean=False) or ""
    rows = [line for line in text.splitlines() if re.match(r" {4}[A-Z1]  \S", line)]
    # A row may explain several: "N  sentences in search, B hypotheses of each".
    return frozenset(letter for row in rows for letter in re.findall(r"(?:^ {4}|, )([A-Z1]) +\w", row))


def suffix(name: str) -> str | None:
    """The dimensions that a name promises: `visible_R1WK` -> `R1WK`."""
    match = _SUFFIX.fullmatch(name)
    return match[1] if match else None


def suffixed_names(source: str) -> Iterator[tuple[int, str]]:
    """Every name in a piece of code that promises dimensions, with its line: variables, arguments, attributes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                if suffix(name):
                    yield node.lineno, name


@contextmanager
def checking_shapes(folder: Path, letters: frozenset[str]) -> Iterator[None]:
    """Looks at every function of the folder's files as it returns, on this thread; raises at the end what it saw."""
    prefix = f"{folder}/"
    wrong: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(prefix):
            where = f"{code.co_filename.removeprefix(prefix)}:{code.co_firstlineno} {code.co_qualname}"
            for problem in problems(frame.f_locals, letters):
                wrong[f"{where}: {problem}"] = None

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
    if wrong:
        raise ShapeError("\n".join(["names that do not tell the truth:", *wrong]))


def problems(values: Mapping[str, Any], letters: frozenset[str]) -> Iterator[str]:
    """What is untrue among these names, and among the fields of each object that they hold."""
    yield from _disagreements(values, letters)
    for fields in _objects_in(values):
        yield from _disagreements(fields, letters)


def _disagreements(values: Mapping[str, Any], letters: frozenset[str]) -> Iterator[str]:
    sizes: dict[str, tuple[int, str]] = {"1": (1, "every name")}
    for name, value in values.items():
        dimensions = suffix(name.rpartition(".")[2])
        if dimensions is None or not isinstance(value, (torch.Tensor, numpy.ndarray)):
            continue
        shape = tuple(value.shape)
        if unknown := sorted(set(dimensions) - letters):
            yield f"{name} uses {', '.join(unknown)}, which the legend does not explain"
        if len(shape) != len(dimensions):
            yield f"{name} promises {len(dimensions)} dimensions and has shape {shape}"
            continue
        for letter, size in zip(dimensions, shape, strict=True):
            known, by = sizes.setdefault(letter, (size, name))
            if size != known:
                yield f"{name} has shape {shape}: {letter} is {size} here and {known} in {by}"


def _objects_in(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The fields of every object that is reached from these; sizes in one say nothing about sizes in another."""
    reached = set()
    waiting = list(values.items())
    while waiting:
        name, value = waiting.pop()
        if id(value) in reached:
            continue
        reached.add(id(value))
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            # The parts of one list are made by one line: the first few say enough.
            waiting += [(f"{name}[{place}]", part) for place, part in enumerate(value[:_PARTS])]
        else:
            fields = {f"{name}.{field}": part for field, part in _fields(name, value)}
            waiting += fields.items()
            yield fields


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        yield from zip(value._fields, value, strict=True)  # type: ignore[attr-defined]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        # While the class's `__init__` is looked at, a field may not be there yet.
        yield from ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value))
    elif name == "self":
        own = getattr(value, "__dict__", {})
        for holder in (own, own.get("_parameters", {}), own.get("_buffers", {})):
            yield from holder.items()
