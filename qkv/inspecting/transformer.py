"""The Transformer of the paper (section 3) in plain arrays, a sentence at a time, that shows all it looks at.

It computes what an engine computes, from the same weights, and keeps every query, key, value and weight on the way; it
needs nothing but numpy. Engines are for speed, this is for looking inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from qkv.config import ModelConfig
from qkv.engines.weights import EMBEDDING, Weights
from qkv.inspecting.parts import (
    FEED_FORWARDS,
    HEAD_NORMS,
    LASTS,
    NORMS,
    POSITIONS,
    RESIDUALS,
    ROUNDINGS,
    TURNS,
    Linears,
    Part,
    log_softmax,
    softmax,
    still,
)
from qkv.search.engine import Floats


class Looked(NamedTuple):
    """What the heads of one attention did: softmax(q·k/√d) is the weight, and what a head sees is weight times v."""

    query_HWE: Floats
    key_HKE: Floats
    value_HKU: Floats
    weight_HWK: Floats


class Inside(NamedTuple):
    """All that happens in a model while it writes a translation; each list has an entry for each layer."""

    encoder: list[Looked]
    decoder: list[Looked]
    cross: list[Looked]
    log_probability_WV: Floats
    """Of every token of the vocabulary, after each that was read."""


class Transformer:
    """An encoder and a decoder as the settings say, with these weights."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config = config
        self._arrays = weights.arrays
        self._linears = Linears(weights.arrays, ROUNDINGS[weights.precision])

    def look_inside(self, source: Sequence[int], read: Sequence[int]) -> Inside:
        """Reads a source with its end, and then what is written of its translation, behind the begin."""
        memory_KD, encoder = self._encoded(source)
        y_WD, decoder, cross = self._decoded(read, memory_KD)
        logits_WV = self._linears.rounding.plain(y_WD) @ self._arrays[EMBEDDING].T
        return Inside(encoder, decoder, cross, log_softmax(logits_WV))

    def _encoded(self, source: Sequence[int]) -> tuple[Floats, list[Looked]]:
        x_WD, looks = self._embedded(source), []
        for layer in range(self.config.encoder_layers):
            block = f"encoder.blocks.{layer}"
            x_WD, looked = self._within(block, x_WD, later=True)
            looks.append(looked)
            x_WD = self._through_network(block, x_WD)
        return self._last("encoder", x_WD), looks

    def _decoded(self, read: Sequence[int], memory_KD: Floats) -> tuple[Floats, list[Looked], list[Looked]]:
        x_WD, within, across = self._embedded(read), [], []
        for layer in range(self.config.decoder_layers):
            block = f"decoder.blocks.{layer}"
            x_WD, looked = self._within(block, x_WD, later=False)
            within.append(looked)
            x_WD, looked = self._across(block, x_WD, memory_KD)
            across.append(looked)
            x_WD = self._through_network(block, x_WD)
        return self._last("decoder", x_WD), within, across

    def _embedded(self, ids: Sequence[int]) -> Floats:
        """Sections 3.4 and 3.5: vectors times the root of their width, and their positions."""
        token_WD = self._arrays[EMBEDDING][[*ids]] * np.float32(math.sqrt(self.config.width))
        embedded: Floats = token_WD + POSITIONS[self.config.positions](self._arrays, len(ids), self.config.width)
        return embedded

    def _within(self, block: str, x_WD: Floats, *, later: bool) -> tuple[Floats, Looked]:
        """Positions look at one another; at `later` ones only where that is said."""
        kept: list[Looked] = []

        def look(inner_WD: Floats) -> Floats:
            count = len(inner_WD)
            hidden_WK = np.zeros((count, count), bool) if later else ~np.tri(count, dtype=bool)
            turn = TURNS[self.config.positions]
            kept.append(self._looked(f"{block}.self_attention", inner_WD, inner_WD, turn, hidden_WK))
            return self._seen(f"{block}.self_attention", kept[0])

        return self._around(f"{block}.around_self_attention", look, x_WD), kept[0]

    def _across(self, block: str, x_WD: Floats, memory_KD: Floats) -> tuple[Floats, Looked]:
        """Positions of the target look at the source."""
        kept: list[Looked] = []

        def look(inner_WD: Floats) -> Floats:
            hidden_WK = np.zeros((len(inner_WD), len(memory_KD)), bool)
            kept.append(self._looked(f"{block}.cross_attention", inner_WD, memory_KD, still, hidden_WK))
            return self._seen(f"{block}.cross_attention", kept[0])

        return self._around(f"{block}.around_cross_attention", look, x_WD), kept[0]

    def _looked(self, name: str, x_WD: Floats, seen_KD: Floats, turn: Part, hidden_WK: Floats) -> Looked:
        """Equation 1, head by head: how much each position that looks takes of each that is seen."""
        norm = partial(HEAD_NORMS[self.config.query_key_norm], self._arrays)
        query_HWE = turn(norm(f"{name}.query_norm", self._by_head(f"{name}.query", x_WD)))
        key_HKE = turn(norm(f"{name}.key_norm", self._by_head(f"{name}.key", seen_KD)))
        score_HWK = query_HWE @ key_HKE.transpose(0, 2, 1) / np.float32(math.sqrt(query_HWE.shape[2]))
        weight_HWK = softmax(np.where(hidden_WK, np.float32(-np.inf), score_HWK))
        return Looked(query_HWE, key_HKE, self._by_head(f"{name}.value", seen_KD), weight_HWK)

    def _seen(self, name: str, looked: Looked) -> Floats:
        """What the heads see, side by side, through the output's product."""
        mixed_WHU = (looked.weight_HWK @ looked.value_HKU).transpose(1, 0, 2)
        return self._linears.product(f"{name}.output", mixed_WHU.reshape(len(mixed_WHU), -1))

    def _by_head(self, name: str, x_WD: Floats) -> Floats:
        by_head: Floats = self._linears.product(name, x_WD).reshape(len(x_WD), self.config.heads, -1)
        return by_head.transpose(1, 0, 2)

    def _through_network(self, block: str, x_WD: Floats) -> Floats:
        network = partial(FEED_FORWARDS[self.config.feed_forward], self._linears, f"{block}.feed_forward")
        return self._around(f"{block}.around_feed_forward", network, x_WD)

    def _around(self, name: str, part: Part, x_WD: Floats) -> Floats:
        """The residual connection and its norm (section 3.1)."""
        return RESIDUALS[self.config.residual](self._norm(name), part, x_WD)

    def _last(self, stack: str, x_WD: Floats) -> Floats:
        return LASTS[self.config.residual](self._norm(f"{stack}.last"), x_WD)

    def _norm(self, name: str) -> Part:
        return partial(NORMS[self.config.norm], self._arrays, f"{name}.norm")
