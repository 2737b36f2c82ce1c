"""A model that can be looked into: its weights are read when somebody does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from qkv.config import ModelConfig
from qkv.engines.shortlist import Shortlist
from qkv.engines.weights import LEARNED_POSITIONS, Weights, read_checkpoint, read_exported
from qkv.inspecting.inspection import Inspection, ModelCard, Other, Searched, Written
from qkv.inspecting.sides import aligned_words, side
from qkv.inspecting.transformer import Transformer
from qkv.search.engine import Floats
from qkv.text.alignment import Alignment
from qkv.text.subwords import Tokenizer

_OTHERS = 9
"""Tokens that are named beside the one that was written."""
_POSITIONS = 24
"""Learned positions that are shown at least: those of a short sentence alone would show no pattern."""
_SHORTENED = (
    "The search chose from a shortlist of the vocabulary, and the probabilities are of all of it: a little lower."
)


@dataclass(frozen=True)
class Came:
    """How a translation came about."""

    source: Sequence[int]
    """With its tags and its end."""
    written: Sequence[int]
    """In the order of writing, with the end where it was written."""
    backwards: bool
    """Whether the last word was written first."""
    languages: tuple[str | None, str | None]
    alignment: Alignment | None
    search: Searched | None
    note: str | None


class Opened:
    """The model of a directory, and what it makes of a sentence."""

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        tokenizer: Tokenizer,
        read: Callable[[], Weights],
        *,
        note: str | None = None,
    ) -> None:
        """`note` is what whoever looks inside should know."""
        self.name = name
        self._note = note
        self._config = config
        self._tokenizer = tokenizer
        self._read = read

    @classmethod
    def exported(cls, directory: Path, config: ModelConfig, tokenizer: Tokenizer) -> Opened:
        """One that `qkv export` wrote."""
        read = partial(read_exported, directory, config)
        note = _SHORTENED if Shortlist.is_in(directory) else None
        return cls(directory.resolve().name, config, tokenizer, read, note=note)

    @classmethod
    def checkpoint(cls, directory: Path, config: ModelConfig, tokenizer: Tokenizer) -> Opened:
        """One of a run: its final weights, or those of a checkpoint."""
        place = directory.resolve()
        run = place.parent.name if place.name == "final" else f"{place.parents[1].name}, {place.name}"
        return cls(run, config, tokenizer, partial(read_checkpoint, directory))

    def inspect(self, came: Came) -> Inspection:
        """All that can be shown of a translation."""
        tokenizer = self._tokenizer
        read = [tokenizer.begin, *came.written[:-1]]
        # Read anew each time: who translates all day should not hold the weights twice because somebody once looked.
        weights = self._read()
        inside = Transformer(self._config, weights).look_inside(came.source, read)
        source = side(tokenizer, came.source)
        target = side(tokenizer, came.written, backwards=came.backwards)
        return Inspection(
            self._card(weights.precision, came.note),
            *came.languages,
            source,
            target,
            tuple(map(tokenizer.piece, read)),
            inside,
            tuple(self._probabilities(inside.log_probability_WV, came.written)),
            came.search,
            aligned_words(came.alignment, source, target),
            _learned_positions(weights, len(came.source)),
        )

    def _card(self, precision: str, note: str | None) -> ModelCard:
        config = self._config
        return ModelCard(
            self.name,
            config.encoder_layers,
            config.decoder_layers,
            config.heads,
            config.width,
            config.head_key_width,
            config.positions,
            config.residual,
            precision,
            " ".join(filter(None, (note, self._note))) or None,
        )

    def _probabilities(self, log_probability_WV: Floats, written: Sequence[int]) -> list[Written]:
        found = []
        for log_probability_V, token in zip(log_probability_WV, written, strict=True):
            count = min(_OTHERS + 1, len(log_probability_V))
            best = np.argpartition(-log_probability_V, count - 1)[:count]
            ranked = sorted((one for one in best.tolist() if one != token), key=lambda one: -log_probability_V[one])
            others = [
                Other(self._tokenizer.piece(one), float(np.exp(log_probability_V[one]))) for one in ranked[:_OTHERS]
            ]
            found.append(Written(float(np.exp(log_probability_V[token])), tuple(others)))
        return found


def _learned_positions(weights: Weights, tokens: int) -> Floats | None:
    positions_KD = weights.arrays.get(LEARNED_POSITIONS)
    return None if positions_KD is None else positions_KD[: max(tokens, _POSITIONS)]
