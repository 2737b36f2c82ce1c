"""A model's parts as nodes of a graph: one function for each part of `qkv.layers`, with the part's own weights.

Values are x_NWD throughout: N sentences of W positions, or of W hypotheses that all stand at the same position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from qkv.export.graph import RUNTIME, Graph
from qkv.export.products import Array, Precision
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block, Stack
from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.positions import LONGEST_WAVE, LearnedPositions, Nowhere, Rotary, Sinusoids, Still
from qkv.layers.residual import PostNorm, PreNorm, Through

_FLOAT32 = 1
"""What ONNX calls a type by."""


class Looked(NamedTuple):
    """What a look gave, and how much of each position it took."""

    mixed: str
    weight_NHWK: str


class KeyValues(NamedTuple):
    """Names of the keys and values that can be looked at."""

    key: str
    value: str


Look = Callable[[str, KeyValues], str]
"""From queries, and the keys and values of the same positions, to what they see in the row."""
LookOut = Callable[[str], str]
"""From queries to what they see in the memory."""


def numbers(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().float().cpu().numpy()
    return array


class Parts:
    """Adds parts to a graph in which `position` holds where its positions are."""

    def __init__(self, graph: Graph, precision: Precision, position: str) -> None:
        self.graph = graph
        self._precision = precision
        self._position = position
        self._turns: dict[int, tuple[str, str, str]] = {}

    def positioned(self, part: nn.Module, x: str, width: int) -> str:
        """Embeddings with their positions added."""
        graph = self.graph
        match part:
            case Sinusoids():
                sine, cosine = self._waves(width)
                waves = graph.add("Concat", self._last(sine), self._last(cosine), axis=-1)
                return graph.add("Add", x, graph.reshape(waves, [-1, width]))
            case LearnedPositions():
                return graph.add("Add", x, graph.add("Gather", graph.constant(numbers(part.weight_KD)), self._position))
            case Nowhere():
                return x
        raise TypeError(part)

    def turned(self, part: object, x_NHWE: str, width: int) -> str:
        """Queries or keys turned by their positions."""
        match part:
            case Rotary():
                return self._rotated(x_NHWE, width)
            case Still():
                return x_NHWE
        raise TypeError(part)

    def normed(self, part: nn.Module, x: str) -> str:
        graph = self.graph
        match part:
            case nn.LayerNorm():
                scale, bias = (graph.constant(numbers(one)) for one in (part.weight, part.bias))
                return graph.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=part.eps)
            case nn.RMSNorm(eps=float(epsilon)):
                scale = graph.constant(numbers(part.weight))
                return graph.add("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=epsilon)
            case nn.Identity():
                return x
        raise TypeError(part)

    def before(self, part: nn.Module, x: str, beside: str | None) -> tuple[str, str]:
        """The residual, and what the sub-layer reads."""
        match part:
            case PostNorm() | Through():
                return x, x if beside is None else beside
            case PreNorm():
                x = x if beside is None else self.graph.add("Add", x, beside)
                return x, self.normed(part.norm, x)
        raise TypeError(part)

    def after(self, part: nn.Module, x: str, y: str) -> tuple[str, str]:
        """What flows on when the sub-layer has said y."""
        match part:
            case PostNorm():
                normed = self.normed(part.norm, self.graph.add("Add", x, y))
                return normed, normed
            case PreNorm():
                return x, y
        raise TypeError(part)

    def network(self, part: nn.Module, x: str) -> str:
        """A feed-forward network."""
        match part:
            case FeedForward():
                return self.linear(part.narrow, self.linear(part.widen, x), rectified=True)
            case GatedFeedForward():
                # Not together: to split what is as wide as both takes longer than to bring x to 8 bits again.
                gate, wide = self.linear(part.gate, x), self.linear(part.widen, x)
                # x · sigmoid(x), by the name that the runtime has for it.
                opened = self.graph.add("QuickGelu", gate, domain=RUNTIME, alpha=1.0)
                return self.linear(part.narrow, self.graph.add("Mul", opened, wide))
        raise TypeError(part)

    def linear(self, part: nn.Linear, x: str, *, rectified: bool = False) -> str:
        """A projection; if `rectified`, of max(0, x)."""
        bias = None if part.bias is None else numbers(part.bias)
        return self._precision.product(self.graph, x, numbers(part.weight), bias, rectified=rectified)

    def together(self, parts: Sequence[nn.Linear], x: str) -> list[str]:
        """Several projections of the same input, as one product."""
        weight = np.concatenate([numbers(part.weight) for part in parts])
        biases = [numbers(part.bias) for part in parts if part.bias is not None]
        y = self._precision.product(self.graph, x, weight, np.concatenate(biases) if biases else None)
        return self.graph.split(y, [part.out_features for part in parts])

    def queries(self, part: MultiHeadAttention, query: str) -> str:
        return self._by_head_and_turned(part, part.query_norm, query)

    def key_values(self, part: MultiHeadAttention, key: str, value: str) -> KeyValues:
        return KeyValues(self._by_head_and_turned(part, part.key_norm, key), self._by_head(part, value))

    def attended(self, part: MultiHeadAttention, query: str, memory: KeyValues, mask: str) -> Looked:
        """softmax(QKᵀ / √d_k + mask) V, then the heads side by side through the output's product."""
        graph, width = self.graph, part.key.out_features // part.heads
        score = graph.add("FusedMatMul", query, memory.key, domain=RUNTIME, transB=1, alpha=1 / math.sqrt(width))
        weight_NHWK = graph.add("Softmax", graph.add("Add", score, mask), axis=-1)
        return Looked(self._through(part, graph.add("MatMul", weight_NHWK, memory.value)), weight_NHWK)

    def attended_one_by_one(self, part: MultiHeadAttention, query: str, memory: KeyValues, mask: str) -> str:
        """The same, a query at a time: what there is to look at is read as it lies, and not put in another order first.

        For few queries of much, that is quicker.
        """
        graph, axis = self.graph, self.graph.constant([3], "int64")
        # By the product itself is quick only for several queries.
        scaled = graph.add("Mul", query, graph.constant(1 / math.sqrt(part.key.out_features // part.heads)))
        query_NHW1E = graph.add("Unsqueeze", scaled, axis)
        key_NH1KE, value_NH1KU = (graph.add("Unsqueeze", one, graph.constant([2], "int64")) for one in memory)
        score_NHW1K = graph.add("FusedMatMul", query_NHW1E, key_NH1KE, domain=RUNTIME, transB=1)
        weight_NHWK = graph.add("Softmax", graph.add("Add", graph.add("Squeeze", score_NHW1K, axis), mask), axis=-1)
        mixed_NHW1U = graph.add("MatMul", graph.add("Unsqueeze", weight_NHWK, axis), value_NH1KU)
        return self._through(part, graph.add("Squeeze", mixed_NHW1U, axis))

    def _through(self, part: MultiHeadAttention, mixed_NHWU: str) -> str:
        mixed = self.graph.reshape(self.graph.add("Transpose", mixed_NHWU, perm=[0, 2, 1, 3]), [0, 0, -1])
        return self.linear(part.output, mixed)

    def _by_head(self, part: MultiHeadAttention, x: str) -> str:
        return self.graph.add("Transpose", self.graph.reshape(x, [0, 0, part.heads, -1]), perm=[0, 2, 1, 3])

    def _by_head_and_turned(self, part: MultiHeadAttention, norm: nn.Module, x: str) -> str:
        return self.turned(part.turn, self.normed(norm, self._by_head(part, x)), part.key.out_features // part.heads)

    def stack(self, part: Stack, x: str, looks: Sequence[tuple[Look, LookOut | None]]) -> str:
        """Blocks one after the other; for each, how it looks within the row, and at the memory where it does."""
        beside: str | None = None
        for block, (look, look_out) in zip(part.blocks, looks, strict=True):
            assert isinstance(block, Block)
            x, beside = self._block(block, x, beside, look, look_out)
        return self.before(part.last, x, beside)[1]

    def _block(self, part: Block, x: str, beside: str | None, look: Look, look_out: LookOut | None) -> tuple[str, str]:
        attention = part.self_attention
        x, inner = self.before(part.around_self_attention, x, beside)
        query, key, value = self.together([attention.query, attention.key, attention.value], inner)
        seen = look(self.queries(attention, query), self.key_values(attention, key, value))
        x, beside = self.after(part.around_self_attention, x, seen)

        if part.cross_attention is not None and part.around_cross_attention is not None:
            assert look_out is not None
            x, inner = self.before(part.around_cross_attention, x, beside)
            query = self.queries(part.cross_attention, self.linear(part.cross_attention.query, inner))
            x, beside = self.after(part.around_cross_attention, x, look_out(query))

        x, inner = self.before(part.around_feed_forward, x, beside)
        return self.after(part.around_feed_forward, x, self.network(part.feed_forward, inner))

    def _rotated(self, x_NHWE: str, width: int) -> str:
        graph = self.graph
        if width not in self._turns:
            # Hypotheses that stand at one position have as many rows of waves as positions of a sentence have.
            positions = graph.add("Shape", x_NHWE, start=2, end=3)
            rows = graph.add("Concat", positions, graph.constant([1], "int64"), axis=0)
            sine, cosine = (graph.add("Expand", wave, rows) for wave in self._waves(width))
            self._turns[width] = graph.constant([0], "int64"), cosine, sine
        return graph.add("RotaryEmbedding", x_NHWE, *self._turns[width], domain=RUNTIME, interleaved=1)

    def _waves(self, width: int) -> list[str]:
        """Sine and cosine of pos / 10000^(2i/width), for each position and each i."""
        pairs = np.arange(0, width, 2, dtype=np.float32)
        slowness = self.graph.constant(np.exp(pairs * np.float32(-math.log(LONGEST_WAVE) / width)))
        position = self.graph.add("Cast", self._last(self._position), to=_FLOAT32)
        angle = self.graph.add("Mul", position, slowness)
        return [self.graph.add("Sin", angle), self.graph.add("Cos", angle)]

    def _last(self, value: str) -> str:
        return self.graph.add("Unsqueeze", value, self.graph.constant([-1], "int64"))
