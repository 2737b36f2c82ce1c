"""A graph as ONNX writes it: the few messages of its protobuf that we need, so that no library has to be there.

A message is a row of fields: a number and a kind, then a varint or a length and so many bytes. The numbers are those of
the public schema, onnx.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Attribute = int | float | Sequence[int]

_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_VARINT, _BYTES, _FLOAT32 = 0, 2, 5
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE, _INTS_ATTRIBUTE = 1, 2, 7
_IN_ANOTHER_FILE = 1
_FORMAT = 10
"""The version of the schema: ONNX's IR version."""


def tensor(name: str, array: NDArray[Any]) -> bytes:
    """Numbers that are part of the graph."""
    return _head(name, str(array.dtype), array.shape) + _bytes(9, np.ascontiguousarray(array).tobytes())


def tensor_elsewhere(name: str, dtype: str, shape: Sequence[int], file: str, offset: int, length: int) -> bytes:
    """Numbers that lie in another file of the same directory."""
    where = {"location": file, "offset": str(offset), "length": str(length)}
    entries = (_bytes(13, _text(1, key) + _text(2, value)) for key, value in where.items())
    return _head(name, dtype, shape) + b"".join(entries) + _number(14, _IN_ANOTHER_FILE)


def node(
    kind: str, domain: str, inputs: Iterable[str], outputs: Iterable[str], attributes: Mapping[str, Attribute]
) -> bytes:
    """One operation."""
    parts = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs] + [_text(4, kind)]
    parts += [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join(parts) + _text(7, domain)


def value(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    """An input or an output; a dimension that is not known beforehand has a name."""
    dimensions = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
    sizes = b"".join(_bytes(1, dimension) for dimension in dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _TYPES[dtype]) + _bytes(2, sizes)))


def model(
    name: str,
    nodes: Iterable[bytes],
    tensors: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    operators: dict[str, int],
) -> bytes:
    """A whole file; `operators` says which version of which set of operations is meant."""
    fields = ((1, nodes), (5, tensors), (11, inputs), (12, outputs))
    graph = b"".join(_bytes(number, part) for number, parts in fields for part in parts) + _text(2, name)
    sets = b"".join(_bytes(8, _text(1, domain) + _number(2, version)) for domain, version in operators.items())
    return _number(1, _FORMAT) + _text(2, "qkv") + _bytes(7, graph) + sets


def _head(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    return b"".join(_number(1, size) for size in shape) + _number(2, _TYPES[dtype]) + _text(8, name)


def _attribute(name: str, given: Attribute) -> bytes:
    if isinstance(given, float):
        kind, content = _FLOAT_ATTRIBUTE, _key(2, _FLOAT32) + struct.pack("<f", given)
    elif isinstance(given, int):
        kind, content = _INT_ATTRIBUTE, _number(3, given)
    else:
        kind, content = _INTS_ATTRIBUTE, b"".join(_number(8, one) for one in given)
    return _text(1, name) + content + _number(20, kind)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number as its two's complement of 64 bits."""
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
