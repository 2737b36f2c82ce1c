"""A graph of ONNX while it is being written: every operation adds a node and gives the name of what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qkv.export import protobuf
from qkv.export.protobuf import Attribute

RUNTIME = "com.microsoft"
"""The domain of operations that only ONNX Runtime has."""
_LAST = (1 << 63) - 1
"""What ONNX takes for an end that is not known."""
_OPERATORS = {"": 24, RUNTIME: 1}


class _Node(NamedTuple):
    kind: str
    domain: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: dict[str, Attribute]


class Graph:
    """Values are names: `y = graph.add("Relu", x)`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[_Node] = []
        self._tensors: dict[str, bytes] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._names: dict[str, str] = {}
        self._count = 0

    def input(self, name: str, dtype: str, shape: Sequence[int | str]) -> str:
        self._inputs.append(protobuf.value(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: str, shape: Sequence[int | str]) -> None:
        """Makes a value one that can be asked for, by this name."""
        # Named anew and not copied: an output may lie in the memory of an input.
        self._names[value] = name
        self._outputs.append(protobuf.value(name, dtype, shape))

    def constant(self, numbers: ArrayLike, dtype: str = "float32") -> str:
        name = self._new()
        self._tensors[name] = protobuf.tensor(name, np.asarray(numbers, dtype))
        return name

    def constant_elsewhere(self, array: NDArray[Any], file: str, offset: int) -> str:
        """Numbers that another file of the directory has already, from this byte on."""
        name = self._new()
        self._tensors[name] = protobuf.tensor_elsewhere(name, str(array.dtype), array.shape, file, offset, array.nbytes)
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Attribute) -> str:
        """An operation with one result."""
        (output,) = self.add_several(1, kind, *inputs, domain=domain, **attributes)
        return output

    def add_several(self, count: int, kind: str, *inputs: str, domain: str = "", **attributes: Attribute) -> list[str]:
        """An operation with several results."""
        outputs = [self._new() for _ in range(count)]
        self._nodes.append(_Node(kind, domain, inputs, outputs, attributes))
        return outputs

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Parts of a value, cut along its last dimension."""
        return self.add_several(len(sizes), "Split", value, self.constant(sizes, "int64"), axis=-1)

    def slice(self, value: str, begin: int, end: int | None) -> str:
        """A part of a value's last dimension."""
        bounds = ([begin], [_LAST if end is None else end], [-1])
        return self.add("Slice", value, *(self.constant(one, "int64") for one in bounds))

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """A size of 0 is that of the value, in the same place; -1 is what is left."""
        return self.add("Reshape", value, self.constant(shape, "int64"))

    def bytes(self) -> bytes:
        """The file."""
        nodes = [
            protobuf.node(kind, domain, map(self._named, inputs), map(self._named, outputs), attributes)
            for kind, domain, inputs, outputs, attributes in self._nodes
        ]
        used = {name for one in self._nodes for name in one.inputs}
        tensors = [tensor for name, tensor in self._tensors.items() if name in used]
        return protobuf.model(self._name, nodes, tensors, self._inputs, self._outputs, _OPERATORS)

    def _named(self, value: str) -> str:
        return self._names.get(value, value)

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"
