"""Products with a matrix of weights, in 32-bit numbers or in 8-bit ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.export.graph import RUNTIME, Graph

Array = NDArray[Any]

_LARGEST = 127
"""The largest 8-bit number; its negative is the smallest that is used, so that zero stays zero."""
_MIDDLE = 128
_SMALLEST_ROW = 1e-30
"""What stands for the largest number of a row that has none but zeros."""


class Matrix(NamedTuple):
    """A matrix as it is kept: each row is its numbers times its scale."""

    numbers: Array
    scale: NDArray[np.float32]


class Precision(NamedTuple):
    """How weights are kept, and how a value is multiplied by kept ones: numbers of inputs by outputs, a scale each."""

    keep: Callable[[Array], Matrix]
    multiply: Callable[[Graph, str, str, str], str]

    def product(self, graph: Graph, x: str, weight: Array, bias: Array | None) -> str:
        """Adds x · weightᵀ + bias to the graph; the weight is outputs by inputs, as torch keeps it."""
        kept = self.keep(weight)
        numbers = graph.constant(kept.numbers.T, str(kept.numbers.dtype))
        y = self.multiply(graph, x, numbers, graph.constant(kept.scale))
        return y if bias is None else graph.add("Add", y, graph.constant(bias))


def _keep_float32(weight: Array) -> Matrix:
    return Matrix(weight.astype(np.float32), np.ones(len(weight), np.float32))


def _multiply_float32(graph: Graph, x: str, numbers: str, scale: str) -> str:  # noqa: ARG001
    return graph.add("MatMul", x, numbers)


def _keep_int8(weight: Array) -> Matrix:
    """Each row by its largest number."""
    largest = np.abs(weight).max(axis=1, keepdims=True)
    scale = np.maximum(largest / _LARGEST, _SMALLEST_ROW).astype(np.float32)
    return Matrix(np.round(weight / scale).astype(np.int8), scale[:, 0])


def _multiply_int8(graph: Graph, x: str, numbers: str, scale: str) -> str:
    """Every row of x is brought to 8 bits by its own largest number: what stands beside it changes nothing."""
    largest = graph.add("ReduceMax", graph.add("Abs", x), graph.constant([-1], "int64"))
    largest = graph.add("Max", largest, graph.constant(_SMALLEST_ROW))
    step, middle = graph.constant(1 / _LARGEST), graph.constant(_MIDDLE, "uint8")
    rounded = graph.add("QuantizeLinear", graph.add("Div", x, largest), step, middle)
    y = graph.add("MatMulIntegerToFloat", rounded, numbers, step, scale, middle, domain=RUNTIME)
    return graph.add("Mul", y, largest)


PRECISIONS = {
    "float32": Precision(_keep_float32, _multiply_float32),
    "int8": Precision(_keep_int8, _multiply_int8),
}
