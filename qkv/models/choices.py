"""Every choice inside a model is a row of a table here; the names are those of `ModelConfig`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from qkv.layers.feed_forward import FeedForward, GatedFeedForward
from qkv.layers.positions import LearnedPositions, Nowhere, Rotary, Sinusoids, Still, Turn
from qkv.layers.residual import PostNorm, PreNorm, Through

NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": partial(nn.RMSNorm, eps=1e-6),
}

RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}

LASTS: dict[str, Callable[..., PreNorm | Through]] = {"post": lambda *_sizes, **_options: Through(), "pre": PreNorm}
"""What closes a stack: a post-norm stack ends in a norm already."""

POSITIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "sinusoidal": lambda width, _longest: Sinusoids(width),
    "learned": lambda width, longest: LearnedPositions(width, longest=longest),
    "rotary": lambda _width, _longest: Nowhere(),
}
"""What is added to the embeddings."""

TURNS: dict[str, Callable[[], Turn]] = {"sinusoidal": Still, "learned": Still, "rotary": Rotary}
"""What is done to queries and keys within a row."""

FEED_FORWARDS: dict[str, Callable[[int, int], nn.Module]] = {"relu": FeedForward, "gated": GatedFeedForward}

QUERY_KEY_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda _width: nn.Identity(),
    "rms": partial(nn.RMSNorm, eps=1e-6),
}

PROJECTIONS: dict[str, Callable[[int, int], nn.Linear]] = {
    "plain": partial(nn.Linear, bias=False),
    "biased": nn.Linear,
}
