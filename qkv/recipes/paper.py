"""The models of the paper: base, big, and every row of its Table 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qkv.config import Config


def base() -> Config:
    """The paper's base model: 6 + 6 layers, width 512, 8 heads, 100,000 steps."""
    return Config()


def big() -> Config:
    """The paper's big model: width 1024, 16 heads, dropout 0.3, 300,000 steps."""
    return Config().with_changes(
        model={"width": 1024, "heads": 16, "hidden": 4096, "dropout": 0.3},
        training={"steps": 300_000, "average_checkpoints": 20, "keep_checkpoints": 20},
    )


def big_en_fr() -> Config:
    """The paper's big model as trained on English-French: dropout 0.1, 32,000 subwords."""
    return big().with_changes(model={"dropout": 0.1}, text={"vocabulary": 32_000})


def _row(sentence: str, *, training: dict[str, Any] | None = None, **model: Any) -> Callable[[], Config]:
    def recipe() -> Config:
        return base().with_changes(model=model, training=training or {})

    recipe.__doc__ = sentence
    return recipe


TABLE_3: dict[str, Callable[[], Config]] = {
    "A-heads1": _row("Table 3 (A): 1 head of width 512.", heads=1),
    "A-heads4": _row("Table 3 (A): 4 heads of width 128.", heads=4),
    "A-heads16": _row("Table 3 (A): 16 heads of width 32.", heads=16),
    "A-heads32": _row("Table 3 (A): 32 heads of width 16.", heads=32),
    "B-keys16": _row("Table 3 (B): keys of width 16.", key_width=16),
    "B-keys32": _row("Table 3 (B): keys of width 32.", key_width=32),
    "C-layers2": _row("Table 3 (C): 2 + 2 layers.", encoder_layers=2, decoder_layers=2),
    "C-layers4": _row("Table 3 (C): 4 + 4 layers.", encoder_layers=4, decoder_layers=4),
    "C-layers8": _row("Table 3 (C): 8 + 8 layers.", encoder_layers=8, decoder_layers=8),
    "C-width256": _row("Table 3 (C): width 256.", width=256),
    "C-width1024": _row("Table 3 (C): width 1024.", width=1024),
    "C-hidden1024": _row("Table 3 (C): feed-forward of 1024.", hidden=1024),
    "C-hidden4096": _row("Table 3 (C): feed-forward of 4096.", hidden=4096),
    "D-dropout0.0": _row("Table 3 (D): no dropout.", dropout=0.0),
    "D-dropout0.2": _row("Table 3 (D): dropout 0.2.", dropout=0.2),
    "D-smoothing0.0": _row("Table 3 (D): no label smoothing.", training={"label_smoothing": 0.0}),
    "D-smoothing0.2": _row("Table 3 (D): label smoothing 0.2.", training={"label_smoothing": 0.2}),
    "E-learned": _row("Table 3 (E): learned positions instead of sinusoids.", positions="learned"),
}
