"""Inspections whose numbers are true to each other, made without a model: the drawing is tried on any shape."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float32]

TIRED = (
    "The animal didn't cross the street because it was too tired .",
    "Das Tier ging nicht hinüber , weil es müde war .",
)
WIDE = (
    "The animal didn't cross the street because it was too wide .",
    "Das Tier ging nicht hinüber , weil sie breit war .",
)


def inspection(
    source: str,
    target: str,
    *,
    layers: int = 2,
    heads: int = 3,
    key_width: int = 4,
    seed: int = 1,
    vectors: bool = True,
) -> dict[str, Any]:
    """What the inspector draws: words longer than five letters are two tokens."""
    random = np.random.default_rng(seed)
    written, given = _side(target), _side(source)
    read = ["<s>", *(token["text"] for token in written["tokens"][:-1])]
    sizes = {
        "encoder": (len(given["tokens"]), len(given["tokens"])),
        "decoder": (len(read), len(read)),
        "cross": (len(read), len(given["tokens"])),
    }
    spoken = {use: _vectors(random, layers, heads, size, key_width) for use, size in sizes.items()}
    words = len(given["words"])
    return {
        "version": 1,
        "model": {
            "name": "made up",
            "encoder_layers": layers,
            "decoder_layers": layers,
            "heads": heads,
            "width": heads * key_width,
            "key_width": key_width,
            "positions": "sinusoidal",
            "residual": "post",
            "weights": "float32",
            "note": None,
        },
        "positions": None,
        "from": "en",
        "to": "de",
        "source": given,
        "target": written,
        "read": {"tokens": [{"text": text} for text in read]},
        "attention": {
            use: packed(weights(parts["q"], parts["k"], causal=use == "decoder")) for use, parts in spoken.items()
        },
        "vectors": {use: {name: packed(part) for name, part in parts.items()} for use, parts in spoken.items()}
        if vectors
        else None,
        "probabilities": [
            {
                "probability": 0.7,
                "others": [{"text": "▁Katze", "probability": 0.2}, {"text": "▁sie", "probability": 0.05}],
            }
            for _ in written["tokens"]
        ],
        "search": {"beam": 2, "length_penalty": 0.6, "nodes": _nodes(written["tokens"])},
        "alignment": [[min(at, words - 1)] for at in range(len(written["words"]))],
    }


def weights(query: Numbers, key: Numbers, *, causal: bool) -> Numbers:
    """Equation 1 without its values, in numpy: what the page is held against."""
    score = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if causal:
        score = np.where(np.tri(score.shape[-2], dtype=bool), score, -np.inf)
    power = np.exp(score - score.max(-1, keepdims=True))
    return np.asarray(power / power.sum(-1, keepdims=True), np.float32)


def unpacked(given: dict[str, Any]) -> Numbers:
    """The numbers of a packed tensor."""
    return np.frombuffer(base64.b64decode(given["data"]), "<f2").astype(np.float32).reshape(given["shape"])


def packed(numbers: Numbers) -> dict[str, Any]:
    """A tensor as an inspection carries it."""
    return {"shape": list(numbers.shape), "data": base64.b64encode(numbers.astype("<f2").tobytes()).decode()}


def _vectors(
    random: np.random.Generator, layers: int, heads: int, size: tuple[int, int], key_width: int
) -> dict[str, Numbers]:
    rows, columns = size
    # Rounded first: what is carried in half precision must agree with the weights made of it.
    return {
        name: random.normal(0, 1.5, (layers, heads, count, key_width)).astype(np.float16).astype(np.float32)
        for name, count in (("q", rows), ("k", columns), ("v", columns))
    }


def _side(text: str) -> dict[str, Any]:
    tokens: list[dict[str, Any]] = []
    words = []
    for at, word in enumerate(text.split()):
        pieces = [f"▁{word[:5]}", word[5:]] if len(word) > 5 else [f"▁{word}"]
        words.append({"text": word, "tokens": [len(tokens), len(tokens) + len(pieces)]})
        tokens += [{"text": piece, "word": at} for piece in pieces]
    return {"text": text, "tokens": [*tokens, {"text": "</s>", "word": None}], "words": words}


def _nodes(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At each step the token that was written, one that was kept and one that was dropped."""
    nodes = [_node(0, None, 0, None, "chosen", "on the way to the translation")]
    chosen = 0
    for step, token in enumerate(tokens, start=1):
        for text, state, why in (
            (token["text"], "chosen", "on the way to the translation"),
            ("▁Katze", "kept", "one of the best 2"),
            ("▁Hund", "dropped", "2 others were likelier"),
        ):
            nodes.append(_node(len(nodes), chosen, step, text, state, why))
        chosen = len(nodes) - 3
    return nodes


def _node(own: int, parent: int | None, step: int, token: str | None, state: str, why: str) -> dict[str, Any]:
    score = -0.1 * own
    return {
        "id": own,
        "parent": parent,
        "step": step,
        "token": token,
        "log_probability": score,
        "score": score,
        "state": state,
        "why": why,
    }
