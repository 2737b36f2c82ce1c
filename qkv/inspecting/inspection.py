"""All that can be shown of one translation, and how it is written down (docs/inspecting.md)."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from qkv.errors import ConfigError
from qkv.inspecting.page import frame
from qkv.inspecting.rollout import rollout, rollout_across
from qkv.inspecting.sides import Side
from qkv.inspecting.transformer import Inside, Looked
from qkv.search.engine import Floats
from qkv.search.record import Node

VERSION = 1
Use = Literal["encoder", "decoder", "cross"]
USES: tuple[Use, ...] = get_args(Use)

MOST_VECTORS = 1_500_000
"""Numbers: where queries, keys and values are more, a page would wait for them; it asks for one head's."""
MOST_VECTORS_OF_FILE = 10_000_000
"""The same where there is nobody to ask: of a hundred tokens in a model of the paper's size, all are kept."""
_DIGITS = 6


class Other(NamedTuple):
    """A token that could have been written instead."""

    text: str
    probability: float


class Written(NamedTuple):
    """How likely a token was that was written, and which were the next likely."""

    probability: float
    others: tuple[Other, ...]


class ModelCard(NamedTuple):
    """What is shown of a model."""

    name: str
    encoder_layers: int
    decoder_layers: int
    heads: int
    width: int
    key_width: int
    positions: str
    residual: str
    weights: str
    note: str | None
    """What cannot be shown, or is shown otherwise than one would think."""


class Searched(NamedTuple):
    """A beam search, with a name for each of its tokens."""

    beam: int
    length_penalty: float
    nodes: Sequence[Node]
    texts: Sequence[str | None]


@dataclass(frozen=True)
class Inspection:
    """`inspection.weights["cross"][layer, head, row, column]`; a notebook draws it."""

    model: ModelCard
    source_language: str | None
    target_language: str | None
    source: Side
    target: Side
    read: tuple[str, ...]
    """What the decoder read at each step: the begin, then all it had written."""
    inside: Inside
    probabilities: tuple[Written, ...]
    """One for each token of the target."""
    search: Searched | None
    """None where the translation was not found by a beam."""
    alignment: list[list[int]]
    """For each word of the target, the words of the source that it came from."""
    positions_KD: Floats | None
    """What the model learned to add to the first tokens, by position; None where it learned nothing of the kind."""

    @cached_property
    def weights(self) -> dict[Use, Floats]:
        """For each use of attention, layers by heads by those who look by those who are seen; each row sums to 1."""
        return {use: np.stack([one.weight_HWK for one in self._looks(use)]) for use in USES}

    def rollout(self, use: Use) -> Floats:
        """How much of each input reaches each position, through all layers; in `cross`, of each token of the source."""
        weights = self.weights
        if use == "cross":
            return rollout_across(weights["encoder"], weights["decoder"], weights["cross"])[0]
        return rollout(weights[use])

    def head(self, use: Use, layer: int, head: int) -> dict[str, Any]:
        """The queries, keys and values of one head, as JSON."""
        looks = self._looks(use)
        if not (0 <= layer < len(looks) and 0 <= head < len(looks[layer].weight_HWK)):
            raise ConfigError(f"the {use} attention has no head {head} in layer {layer}; both are counted from 0")
        looked = looks[layer]
        own = (looked.query_HWE[head], looked.key_HKE[head], looked.value_HKU[head])
        named = {name: _packed(array) for name, array in zip("qkv", own, strict=True)}
        return {"use": use, "layer": layer, "head": head, **named}

    def as_json(self, *, most_vectors: int = MOST_VECTORS) -> dict[str, Any]:
        """The object that pages draw; queries, keys and values are left out where they are more numbers than these."""
        return {
            "version": VERSION,
            "model": self.model._asdict(),
            "from": self.source_language,
            "to": self.target_language,
            "source": _side(self.source),
            "target": _side(self.target),
            "read": {"tokens": [{"text": text} for text in self.read]},
            "attention": {use: _packed(weight_LHWK) for use, weight_LHWK in self.weights.items()},
            "vectors": self._vectors(most_vectors),
            "positions": None if self.positions_KD is None else _packed(self.positions_KD),
            "probabilities": [
                {
                    "probability": round(one.probability, _DIGITS),
                    "others": [
                        {"text": other.text, "probability": round(other.probability, _DIGITS)} for other in one.others
                    ],
                }
                for one in self.probabilities
            ],
            "search": None if self.search is None else _search(self.search),
            "alignment": self.alignment,
        }

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return frame(self.as_json(most_vectors=MOST_VECTORS_OF_FILE))

    def to_json(self) -> str:
        return json.dumps(self.as_json(), ensure_ascii=False)

    def _looks(self, use: Use) -> list[Looked]:
        looks: list[Looked] = getattr(self.inside, use)
        return looks

    def _vectors(self, most: int) -> dict[str, dict[str, Any]] | None:
        if sum(sum(map(np.size, looked[:3])) for use in USES for looked in self._looks(use)) > most:
            return None
        return {
            use: {
                name: _packed(np.stack([looked[place] for looked in self._looks(use)]))
                for place, name in enumerate("qkv")
            }
            for use in USES
        }


def _packed(array: Floats) -> dict[str, Any]:
    """Numbers as half-precision bytes, the last dimension first: a tenth of what digits would take."""
    return {"shape": [*array.shape], "data": base64.b64encode(array.astype("<f2").tobytes()).decode()}


def _side(one: Side) -> dict[str, Any]:
    return {
        "text": one.text,
        "tokens": [token._asdict() for token in one.tokens],
        "words": [{"text": word.text, "tokens": [word.first, word.behind]} for word in one.words],
    }


def _search(search: Searched) -> dict[str, Any]:
    nodes = [
        {
            "id": node.number,
            "parent": None if node.token is None else node.parent,
            "step": node.step,
            "token": text,
            "log_probability": round(node.log_probability, _DIGITS),
            "score": round(node.score, _DIGITS),
            "state": node.state,
            "why": node.why,
        }
        for node, text in zip(search.nodes, search.texts, strict=True)
    ]
    return {"beam": search.beam, "length_penalty": search.length_penalty, "nodes": nodes}
