"""What the graphs of an exported model hold: their operations in order, and their constants, read without any library.

The numbers of fields are those of the public schema, onnx.proto; `qkv.export.protobuf` writes what is read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.errors import CheckpointError

_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8"}
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 63
"""Bits behind which no number goes on."""
_GRAPH_OF_MODEL, _NODE_OF_GRAPH, _TENSOR_OF_GRAPH = 7, 1, 5


class Node(NamedTuple):
    """One operation, and the names of what goes in and comes out."""

    kind: str
    inputs: list[str]
    outputs: list[str]


class Read(NamedTuple):
    """A graph: every operation in the order of the file, and the constants by their names."""

    nodes: list[Node]
    constants: dict[str, NDArray[Any]]


def read_graph(path: Path) -> Read:
    """The operations and constants of a file; constants that lie in another file are left out."""
    try:
        model = memoryview(path.read_bytes())
        nodes: list[Node] = []
        constants: dict[str, NDArray[Any]] = {}
        for number, graph in _fields(model):
            if number != _GRAPH_OF_MODEL:
                continue
            for part, content in _fields(_part(graph)):
                if part == _NODE_OF_GRAPH:
                    nodes.append(_node(_part(content)))
                elif part == _TENSOR_OF_GRAPH:
                    constants |= _tensor(_part(content))
    except (OSError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise CheckpointError(f"{path} is damaged: {error}; export the model again") from error
    return Read(nodes, constants)


def _node(content: memoryview) -> Node:
    inputs, outputs, kind = [], [], ""
    for number, value in _fields(content):
        if number == 1:
            inputs.append(_text(value))
        elif number == 2:
            outputs.append(_text(value))
        elif number == 4:
            kind = _text(value)
    return Node(kind, inputs, outputs)


def _tensor(content: memoryview) -> dict[str, NDArray[Any]]:
    shape, kind, name = [], 0, ""
    numbers: memoryview | None = None
    for number, value in _fields(content):
        if number == 1 and isinstance(value, int):
            shape.append(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _text(value)
        elif number == 9:
            numbers = _part(value)
    if numbers is None:
        return {}
    return {name: np.frombuffer(numbers, _TYPES[kind]).reshape(shape)}


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message: a number and what it holds."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = _varint(message, place)
        elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
            length = 4 if kind == _FOUR_BYTES else 8
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + length > len(message):
            raise ValueError("a field is longer than the file")
        yield number, message[place : place + length]
        place += length


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    number = shift = 0
    while shift <= _LONGEST_VARINT:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
    raise ValueError("a number has no end")


def _part(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message should be")  # noqa: TRY004 - a damaged file, not a wrong argument
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_part(value)).decode()
