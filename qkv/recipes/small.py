"""Recipes for a machine without a GPU."""

from __future__ import annotations

from qkv.config import Config
from qkv.recipes.variants import modern


def tiny() -> Config:
    """Learns a toy task in a minute on two CPU cores: 2 + 2 layers, width 64."""
    return Config().with_changes(
        model={"width": 64, "heads": 4, "hidden": 256, "encoder_layers": 2, "decoder_layers": 2, "residual": "pre"},
        text={"vocabulary": 1000},
        data={"row_width": 64, "held_out": 100},
        training={
            "steps": 600,
            "tokens_per_batch": 2048,
            "optimizer": "adamw",
            "schedule": "linear",
            "learning_rate": 3e-3,
            "warmup_steps": 60,
            "epsilon": 1e-8,
            "clip": 1.0,
            "final": "last",
            "save_every": 200,
            "validate_every": 200,
            "validation_sentences": 100,
            "report_every": 20,
        },
    )


def small() -> Config:
    """Short sentences on two CPU cores in a few minutes, as `make demo` does: `modern`, 2 + 2 layers, width 192."""
    return modern().with_changes(
        # Each sentence is seen about once: neither dropout nor smoothing has anything to prevent.
        model={"width": 192, "heads": 4, "hidden": 512, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0},
        text={"vocabulary": 4000},
        data={"row_width": 64},
        training={
            "steps": 1600,
            "tokens_per_batch": 1024,
            "learning_rate": 4e-3,
            "warmup_steps": 150,
            "label_smoothing": 0.0,
            "final": "last",
            "save_every": 500,
            "validate_every": 500,
            "validation_sentences": 200,
            "report_every": 50,
        },
    )
