"""The floating-point operations of training, by arithmetic of a model's sizes: the same however they are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkv.config import ModelConfig

LIMITED = "H200"
"""The GPU whose limit is known, as part of its name."""
LIMIT = 790e12
"""What is taken for its limit in bfloat16, in operations a second; the best of large products were a little above."""
_MATRICES = {"relu": 2, "gated": 3}
"""Of a feed-forward network, each as large as width times hidden."""
_PASSES = 3
"""Each product of the forward pass is followed by two of the backward pass, one for either factor."""

Lengths = np.ndarray[Any, np.dtype[np.integer[Any]]]


def operations(config: ModelConfig, vocabulary: int, source: Lengths, target: Lengths) -> float:
    """Of learning once from pairs of these lengths, marks included: what matrices do, and nothing that is not useful.

    Padding costs nothing, and neither does a key that a query may not see.
    """
    keys, values = config.heads * config.head_key_width, config.heads * config.head_value_width
    # Queries, keys, values, and what becomes of the values.
    attention = 2 * config.width * (keys + values)
    network = _MATRICES[config.feed_forward] * config.width * config.hidden
    # Cross-attention's keys and values are made of the source, its queries and what comes out of it of the target.
    of_source = config.encoder_layers * (attention + network) + config.decoder_layers * attention // 2
    of_target = config.decoder_layers * (attention + network + attention // 2) + config.width * vocabulary
    source, target = source.astype(np.float64), target.astype(np.float64)
    seen = config.encoder_layers * source**2 + config.decoder_layers * (target * (target + 1) / 2 + target * source)
    multiplications = source.sum() * of_source + target.sum() * of_target + seen.sum() * (keys + values)
    return float(_PASSES * 2 * multiplications)


def operations_a_token(config: ModelConfig, vocabulary: int, source: Lengths, target: Lengths) -> float:
    """On average over the tokens of both sides."""
    return operations(config, vocabulary, source, target) / float(source.sum() + target.sum())
