"""How often a run that is shorter than usual saves, validates and tells."""

from __future__ import annotations

from qkv.config import TrainingConfig

_SAVES = 40
"""Checkpoints of a short run, so that the mean of the last five is one over the last tenth of it."""
_TOLD = 10


def often_enough(options: TrainingConfig, steps: int) -> dict[str, int]:
    """The settings for so many steps: as often as they were, or more often."""
    return {
        "save_every": max(1, min(options.save_every, steps // _SAVES)),
        "validate_every": max(1, min(options.validate_every, steps // _TOLD)),
        "report_every": max(1, min(options.report_every, steps // _TOLD)),
    }
