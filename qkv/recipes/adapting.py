"""How an exported model learns on: what it was trained by was for a machine and an amount of text that are not here."""

from __future__ import annotations

from qkv.config import TrainingConfig

PASSES = 3
"""How often it goes through the new text, about."""


def adapting() -> TrainingConfig:
    """Small batches, which a laptop has the memory for and of which few lines are many; steps are those of 8,000 pairs.

    AdamW, since on a CPU Muon takes several times as long for a batch as small as this.
    """
    return TrainingConfig(
        steps=1000,
        tokens_per_batch=1024,
        optimizer="adamw",
        schedule="linear",
        learning_rate=3e-4,
        decay_from=0.0,
        epsilon=1e-8,
        clip=1.0,
        final="last",
        average_checkpoints=1,
        keep_checkpoints=2,
        validation_sentences=100,
    )
