"""The parts of a Transformer as functions of arrays; a table for each choice that a model can be built with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from qkv.engines.weights import LEARNED_POSITIONS
from qkv.search.engine import Floats

LONGEST_WAVE = 10_000.0
_LAYER_EPSILON = 1e-5
_RMS_EPSILON = 1e-6
_LARGEST, _LARGEST_UNSIGNED = 127, 255
_SMALLEST_ROW = np.float32(1e-30)
"""What stands for the largest number of a row that has none but zeros."""

Arrays = Mapping[str, Floats]
Part = Callable[[Floats], Floats]


def softmax(score: Floats) -> Floats:
    """Over the last dimension; what is minus infinity becomes zero."""
    power: Floats = np.exp(score - score.max(axis=-1, keepdims=True))
    shares: Floats = power / power.sum(axis=-1, keepdims=True)
    return shares


def log_softmax(score: Floats) -> Floats:
    below = score - score.max(axis=-1, keepdims=True)
    logarithms: Floats = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return logarithms


def layer_norm(arrays: Arrays, name: str, x: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    return _divided(x, _LAYER_EPSILON) * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]


def rms_norm(arrays: Arrays, name: str, x: Floats) -> Floats:
    return _divided(x, _RMS_EPSILON) * arrays[f"{name}.weight"]


def _divided(x: Floats, epsilon: float) -> Floats:
    """By the root of its mean square."""
    divided: Floats = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    return divided


NORMS = {"layer": layer_norm, "rms": rms_norm}
HEAD_NORMS: dict[str, Callable[[Arrays, str, Floats], Floats]] = {"none": lambda _arrays, _name, x: x, "rms": rms_norm}


def post_norm(norm: Part, part: Part, x: Floats) -> Floats:
    """As the paper has it."""
    return norm(x + part(x))


def pre_norm(norm: Part, part: Part, x: Floats) -> Floats:
    return x + part(norm(x))


RESIDUALS = {"post": post_norm, "pre": pre_norm}
LASTS: dict[str, Callable[[Part, Floats], Floats]] = {"post": lambda _norm, x: x, "pre": lambda norm, x: norm(x)}
"""What closes a stack: a post-norm stack ends in a norm already."""


def waves(count: int, width: int) -> tuple[Floats, Floats]:
    """Section 3.5: sine and cosine of pos / 10000^(2i/width), for so many positions and each i."""
    pair = np.arange(0, width, 2, dtype=np.float32)
    angle = np.arange(count, dtype=np.float32)[:, None] * np.exp(pair * np.float32(-math.log(LONGEST_WAVE) / width))
    return np.sin(angle), np.cos(angle)


def sinusoids(arrays: Arrays, count: int, width: int) -> Floats:  # noqa: ARG001
    return np.stack(waves(count, width), axis=-1).reshape(count, width)


def turned(x_HWE: Floats) -> Floats:
    """Pairs of dimensions turned by an angle that grows with the position."""
    H, W, E = x_HWE.shape
    sine, cosine = waves(W, E)
    even, odd = x_HWE[..., 0::2], x_HWE[..., 1::2]
    return np.stack([even * cosine - odd * sine, odd * cosine + even * sine], axis=-1).reshape(H, W, E)


def still(x_HWE: Floats) -> Floats:
    return x_HWE


POSITIONS: dict[str, Callable[[Arrays, int, int], Floats]] = {
    "sinusoidal": sinusoids,
    "learned": lambda arrays, count, _width: arrays[LEARNED_POSITIONS][:count],
    "rotary": lambda _arrays, count, width: np.zeros((count, width), np.float32),
}
"""What is added to the embeddings."""
TURNS: dict[str, Part] = {"sinusoidal": still, "learned": still, "rotary": turned}
"""What is done to queries and keys within a sentence."""


class Rounding(NamedTuple):
    """How vectors are brought to the numbers that are multiplied, and how max(0, x) of them is."""

    plain: Part
    rectified: Part


def _to_8_bits(x: Floats) -> Floats:
    """As an exported model does it: each row by its own largest number."""
    span = np.maximum(np.abs(x).max(axis=-1, keepdims=True), _SMALLEST_ROW)
    rounded: Floats = np.round(x / span * _LARGEST) * (span / _LARGEST)
    return rounded


def _rectified_to_8_bits(x: Floats) -> Floats:
    span = np.maximum(x.max(axis=-1, keepdims=True), _SMALLEST_ROW)
    rounded: Floats = np.round(np.maximum(x, 0) / span * _LARGEST_UNSIGNED) * (span / _LARGEST_UNSIGNED)
    return rounded


ROUNDINGS = {
    "float32": Rounding(lambda x: x, lambda x: np.maximum(x, 0)),
    "int8": Rounding(_to_8_bits, _rectified_to_8_bits),
}


class Linears(NamedTuple):
    """The products of a model, by name."""

    arrays: Arrays
    rounding: Rounding

    def product(self, name: str, x: Floats) -> Floats:
        return self._with_bias(name, self.rounding.plain(x))

    def product_of_rectified(self, name: str, x: Floats) -> Floats:
        """Of max(0, x)."""
        return self._with_bias(name, self.rounding.rectified(x))

    def _with_bias(self, name: str, x: Floats) -> Floats:
        y: Floats = x @ self.arrays[f"{name}.weight"].T
        bias = self.arrays.get(f"{name}.bias")
        return y if bias is None else y + bias


def relu_network(linears: Linears, name: str, x: Floats) -> Floats:
    """Equation 2."""
    return linears.product_of_rectified(f"{name}.narrow", linears.product(f"{name}.widen", x))


def gated_network(linears: Linears, name: str, x: Floats) -> Floats:
    gate = linears.product(f"{name}.gate", x)
    # As a tangent, so that no power of a large number is taken.
    opened = gate * (0.5 * (1 + np.tanh(0.5 * gate)))
    return linears.product(f"{name}.narrow", opened * linears.product(f"{name}.widen", x))


FEED_FORWARDS = {"relu": relu_network, "gated": gated_network}
