"""Products with a matrix of weights, in 32-bit numbers or in 8-bit ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


Multiply = Callable[[Graph, str, str, str], str]
"""Adds to a graph a value times numbers that are kept, with their scale."""


class Precision(NamedTuple):
    """How weights are kept, and how a value is multiplied by kept ones: numbers of inputs by outputs, a scale each."""

    keep: Callable[[Array], Matrix]
    multiply: Multiply
    multiply_rectified: Multiply
    """The same of max(0, value)."""

    def product(self, graph: Graph, x: str, weight: Array, bias: Array | None, *, rectified: bool = False) -> str:
        """Adds x · weightᵀ + bias to the graph; the weight is outputs by inputs, as torch keeps it."""
        kept = self.keep(weight)
        numbers = graph.constant(kept.numbers.T, str(kept.numbers.dtype))
        multiply = self.multiply_rectified if rectified else self.multiply
        y = multiply(graph, x, numbers, graph.constant(kept.scale))
        return y if bias is None else graph.add("Add", y, graph.constant(bias))


def _keep_float32(weight: Array) -> Matrix:
    return Matrix(weight.astype(np.float32), np.ones(len(weight), np.float32))


def _multiply_float32(graph: Graph, x: str, numbers: str, scale: str) -> str:  # noqa: ARG001
    return graph.add("MatMul", x, numbers)


def _multiply_rectified_float32(graph: Graph, x: str, numbers: str, scale: str) -> str:
    return _multiply_float32(graph, graph.add("Relu", x), numbers, scale)


def _keep_int8(weight: Array) -> Matrix:
    """Each row by its largest number."""
    largest = np.abs(weight).max(axis=1, keepdims=True)
    scale = np.maximum(largest / _LARGEST, _SMALLEST_ROW).astype(np.float32)
    return Matrix(np.round(weight / scale).astype(np.int8), scale[:, 0])


def _multiply_int8(graph: Graph, x: str, numbers: str, scale: str) -> str:
    middle = graph.constant(_MIDDLE, "uint8")
    return _multiply_rows(graph, x, graph.add("Abs", x), numbers, scale, largest=_LARGEST, zeros=[middle])


def multiply_unsigned_int8(graph: Graph, x: str, numbers: str, scale: str) -> str:
    """The same of numbers that 128 was added to."""
    middle = graph.constant(_MIDDLE, "uint8")
    return _multiply_rows(graph, x, graph.add("Abs", x), numbers, scale, largest=_LARGEST, zeros=[middle, middle])


def _multiply_rectified_int8(graph: Graph, x: str, numbers: str, scale: str) -> str:
    # What is below zero becomes zero by being rounded: there is no number for it. That leaves all 8 bits for the rest.
    return _multiply_rows(graph, x, x, numbers, scale, largest=2 * _LARGEST + 1, zeros=[])


def _multiply_rows(
    graph: Graph, x: str, size: str, numbers: str, scale: str, *, largest: int, zeros: Sequence[str]
) -> str:
    """Every row of x is brought to 8 bits by its own largest size: what stands beside it changes nothing.

    `zeros` are the 8-bit numbers that stand for zero, in x and in the numbers, where these are not 0.
    """
    span = graph.add("Max", graph.add("ReduceMax", size, graph.constant([-1], "int64")), graph.constant(_SMALLEST_ROW))
    step = graph.constant(1 / largest)
    # To divide all of a row takes longer than to divide once.
    rounded = graph.add("QuantizeLinear", graph.add("Mul", x, graph.add("Reciprocal", span)), step, *zeros[:1])
    y = graph.add("MatMulIntegerToFloat", rounded, numbers, step, scale, *zeros, domain=RUNTIME)
    return graph.add("Mul", y, span)


PRECISIONS = {
    "float32": Precision(_keep_float32, _multiply_float32, _multiply_rectified_float32),
    "int8": Precision(_keep_int8, _multiply_int8, _multiply_rectified_int8),
}
