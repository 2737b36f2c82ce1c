"""How long a run is that follows its text, and how often one that is shorter than usual saves, validates and tells."""

from __future__ import annotations

from pathlib import Path

from qkv.config import Config, TrainingConfig
from qkv.prepare import Prepared
from qkv.prepare.mix import Mix
from qkv.text.files import PairFile
from qkv.text.subwords import Tokenizer

_SAVES = 40
"""Checkpoints of a short run, so that the mean of the last five is one over the last tenth of it."""
_TOLD = 10
_ALL_OF = 1000
_EVERY = 50
"""Pairs of a file that are cut into subwords to know how many there are: all of the first ones, then one of so many."""


def often_enough(options: TrainingConfig, steps: int) -> dict[str, int]:
    """The settings for so many steps: as often as they were, or more often."""
    saves = _SAVES if options.final == "checkpoints" else _TOLD
    return {
        "save_every": max(1, min(options.save_every, steps // saves)),
        "validate_every": max(1, min(options.validate_every, steps // _TOLD)),
        "report_every": max(1, min(options.report_every, steps // _TOLD)),
    }


def target_tokens(text: Prepared | Mix, tokenizer: Path, config: Config) -> int:
    """How many target tokens there are in all directions; of files that nobody has cut into subwords yet, about."""
    if isinstance(text, Prepared):
        return int(text.report["training"]["target_tokens"])
    subwords = Tokenizer.load(tokenizer)
    # A direction learns to write one of two columns.
    return round(
        sum(
            _tokens(part, subwords, config.data.max_bytes) * row.repetitions * max(1, len(row.directions)) / 2
            for row in text.rows
            for part in row.parts()
        )
    )


def _tokens(part: PairFile, tokenizer: Tokenizer, longest: int) -> int:
    """Of both columns."""
    tokens = 0
    for number, pair in enumerate(part.pairs(longest)):
        if pair.fault is None and (number < _ALL_OF or number % _EVERY == 0):
            some = sum(len(tokenizer.encode(side.decode(errors="replace"))) + 1 for side in (pair.source, pair.target))
            tokens += some if number < _ALL_OF else _EVERY * some
    return tokens
