"""What can be reproduced, and what the paper printed: Table 2, and every row of Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from qkv.config import Config
from qkv.errors import ConfigError, UnknownNameError
from qkv.recipes import recipe


@dataclass(frozen=True)
class Experiment:
    """A recipe on a corpus, which settles text and data, and the BLEU of the paper's Table 2, where it has one."""

    title: str
    corpus: str
    recipe: str
    printed: float | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def config(self) -> Config:
        return recipe(self.recipe).with_changes(**self.changes)


EXPERIMENTS: dict[str, Experiment] = {
    "base-en-de": Experiment("the base model, English-German", "wmt14-en-de", "base", 27.3),
    "big-en-de": Experiment("the big model, English-German", "wmt14-en-de", "big", 28.4),
    "base-en-fr": Experiment("the base model, English-French", "wmt14-en-fr", "base", 38.1),
    "big-en-fr": Experiment("the big model, English-French", "wmt14-en-fr", "big-en-fr", 41.8),
    "iwslt14-de-en": Experiment(
        "talks, German-English: base with half the feed-forward and more dropout",
        "iwslt14-de-en",
        "base",
        changes={
            "model": {"heads": 4, "hidden": 1024, "dropout": 0.3},
            "training": {"steps": 40_000, "tokens_per_batch": 8192, "save_every": 1000, "validate_every": 2000},
        },
    ),
    "multi30k-en-de": Experiment(
        "captions, English-German: 3 + 3 layers of width 256",
        "multi30k-en-de",
        "base",
        changes={
            "model": {
                "width": 256, "heads": 4, "hidden": 1024, "encoder_layers": 3, "decoder_layers": 3, "dropout": 0.3,
            },
            "training": {
                "steps": 6000, "tokens_per_batch": 4096, "warmup_steps": 1000, "save_every": 250, "validate_every": 500,
            },
        },
    ),
}  # fmt: skip


class Printed(NamedTuple):
    """A row of the paper's Table 3: perplexity a subword and BLEU on newstest2013, and millions of parameters."""

    perplexity: float
    bleu: float
    millions: int | None = None
    """Where the paper leaves a blank, those of base."""


TABLE_3: dict[str, Printed] = {
    "base": Printed(4.92, 25.8, 65),
    "A-heads1": Printed(5.29, 24.9),
    "A-heads4": Printed(5.00, 25.5),
    "A-heads16": Printed(4.91, 25.8),
    "A-heads32": Printed(5.01, 25.4),
    "B-keys16": Printed(5.16, 25.1, 58),
    "B-keys32": Printed(5.01, 25.4, 60),
    "C-layers2": Printed(6.11, 23.7, 36),
    "C-layers4": Printed(5.19, 25.3, 50),
    "C-layers8": Printed(4.88, 25.5, 80),
    "C-width256": Printed(5.75, 24.5, 28),
    "C-width1024": Printed(4.66, 26.0, 168),
    "C-hidden1024": Printed(5.12, 25.4, 53),
    "C-hidden4096": Printed(4.75, 26.2, 90),
    "D-dropout0.0": Printed(5.77, 24.6),
    "D-dropout0.2": Printed(4.95, 25.5),
    "D-smoothing0.0": Printed(4.67, 25.3),
    "D-smoothing0.2": Printed(5.47, 25.7),
    "E-learned": Printed(4.92, 25.7),
    "big": Printed(4.33, 26.4, 213),
}
"""By the names of their recipes."""


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, [*EXPERIMENTS, "table3"], listed_by="qkv reproduce")
    return EXPERIMENTS[name]


def rows(wanted: Sequence[str] = ()) -> list[str]:
    """The rows of Table 3 that are meant, in its order: each by its name, or by the letter of its group; or all."""
    unknown = [word for word in wanted if not any(_means(word, row) for row in TABLE_3)]
    if unknown:
        raise ConfigError(
            f"Table 3 has no row {', '.join(unknown)}; it has the groups A to E, and {', '.join(TABLE_3)}"
        )
    return [row for row in TABLE_3 if not wanted or any(_means(word, row) for word in wanted)]


def _means(word: str, row: str) -> bool:
    return row == word or (len(word) == 1 and row.startswith(f"{word}-"))
