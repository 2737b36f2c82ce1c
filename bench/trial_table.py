"""What is tried at equal time: settings on top of base, each row a recipe of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from qkv.recipes import recipe
from qkv.settings import settings

Settings = dict[str, Any]


class Trial(NamedTuple):
    settings: Settings
    data: str = "data"
    """The option that names the data it is trained on."""


COMMON: Settings = {
    "training.tokens_per_batch": 65_536,
    "training.schedule": "linear",
    "training.decay_from": 0.4,
    "training.warmup_steps": 80,
    "training.clip": 1.0,
    "training.epsilon": 1e-8,
    "training.final": "last",
    "training.keep_checkpoints": 1,
    "training.average_checkpoints": 1,
    "training.report_every": 50,
    "training.validation_sentences": 1000,
}
PRE: Settings = {"model.residual": "pre"}
MODERN: Settings = {
    **PRE,
    "model.norm": "rms",
    "model.positions": "rotary",
    "model.feed_forward": "gated",
    "model.hidden": 1344,
    "model.query_key_norm": "rms",
}
ADAMW: Settings = {"training.optimizer": "adamw", "training.learning_rate": 2e-3}
MUON: Settings = {"training.optimizer": "muon", "training.learning_rate": 6e-3, "training.rest_rate": 0.5}
FAST: Settings = {**MODERN, **MUON, "model.initial": "silent", "training.weight_decay": 0.1}
"""The recipe of this name, but for what goes with the length of a run: its schedule, and its weight decay."""
WIDE: Settings = {"model.width": 768, "model.heads": 12, "model.hidden": 2048}
FREE: Settings = {"training.schedule": "free"}


def papers(peak: float, warmup_steps: int) -> Settings:
    """The paper's model, Adam and schedule, whose peak is that of base after 4,000 steps for 7e-4, sooner reached."""
    return {
        "training.optimizer": "adam",
        "training.schedule": "paper",
        # Equation 3 peaks at the inverse root of the width times the warm-up.
        "training.learning_rate": peak * (512 * warmup_steps) ** 0.5,
        "training.warmup_steps": warmup_steps,
        "training.clip": "none",
        "training.epsilon": 1e-9,
    }


TRIALS: dict[str, Trial] = {
    "AdamW 2e-3, pre-norm": Trial({**PRE, **ADAMW}),
    "AdamW 2e-3, modern": Trial({**MODERN, **ADAMW}),
    "the paper's, peak 1.1e-3 after 400 steps": Trial(papers(1.1e-3, 400)),
    "the paper's, peak 7e-4 after 200 steps": Trial(papers(7e-4, 200)),
    "the paper's, peak 3.5e-4 after 200 steps": Trial(papers(3.5e-4, 200)),
    "Muon 6e-3, post-norm": Trial(MUON),
    "Muon 6e-3, pre-norm": Trial({**PRE, **MUON}),
    "Muon 6e-3, pre-norm, silent": Trial({**PRE, **MUON, "model.initial": "silent"}),
    "Muon 6e-3, pre-norm, rotary": Trial({**PRE, **MUON, "model.positions": "rotary"}),
    "Muon 6e-3, pre-norm, normed queries and keys": Trial({**PRE, **MUON, "model.query_key_norm": "rms"}),
    "Muon 6e-3, modern": Trial({**MODERN, **MUON}),
    "fast": Trial(FAST),
    "fast, no dropout": Trial({**FAST, "model.dropout": 0.0}),
    "fast, dropout after 250 steps": Trial({**FAST, "training.dropout_after": 250}),
    "fast, no weight decay": Trial({**FAST, "training.weight_decay": 0.0}),
    "fast, weight decay 0.3": Trial({**FAST, "training.weight_decay": 0.3}),
    "fast, weight decay 0.6": Trial({**FAST, "training.weight_decay": 0.6}),
    "fast, weight decay 1": Trial({**FAST, "training.weight_decay": 1.0}),
    "fast, no weight decay, no dropout": Trial({**FAST, "training.weight_decay": 0.0, "model.dropout": 0.0}),
    "fast, no dropout, 9e-3": Trial({**FAST, "model.dropout": 0.0, "training.learning_rate": 9e-3}),
    "fast, width 768": Trial({**FAST, **WIDE}),
    "fast, decay from 0.1": Trial({**FAST, "training.decay_from": 0.1}),
    "fast, moving average": Trial({**FAST, "training.final": "moving", "training.moving_average": 0.98}),
    "fast, half the batch, 4e-3": Trial({**FAST, "training.tokens_per_batch": 32_768, "training.learning_rate": 4e-3}),
    "fast, 9e-3": Trial({**FAST, "training.learning_rate": 9e-3}),
    "fast, batches grow over 150 steps": Trial({**FAST, "training.ramp_steps": 150}),
    "fast, free of a schedule": Trial({**FAST, **FREE}),
    "fast, free of a schedule, 1e-2": Trial({**FAST, **FREE, "training.learning_rate": 1e-2}),
    "AdamW 4e-3, modern, free of a schedule": Trial({**MODERN, **ADAMW, **FREE, "training.learning_rate": 4e-3}),
    "fast, two readings agree": Trial({**FAST, "training.agreement": 5.0}),
    "fast, rows of 64": Trial({**FAST, "training.row_width": 64}),
    "fast, rows of 96": Trial({**FAST, "training.row_width": 96}),
    "fast, rows of 192": Trial({**FAST, "training.row_width": 192}),
    "fast, rows of 256": Trial({**FAST, "training.row_width": 256}),
    "fast, unigram": Trial(FAST, data="unigram"),
    "fast, unigram, sampled subwords": Trial(FAST, data="sampled"),
}
COSTS_NOTHING = {
    "model.initial", "training.learning_rate", "training.weight_decay", "training.decay_from", "training.warmup_steps",
    "training.dropout_after", "training.ramp_steps",
}  # fmt: skip
"""Settings that change what a step learns, but not what a step of the whole batch takes."""


def varied(trial: Trial) -> set[str]:
    """The settings in which a trial is not as `fast`, be it by leaving them as they are in base: what it is about."""
    base = {**dict(settings(recipe("base"))), **COMMON}
    own, fast = {**base, **trial.settings}, {**base, **FAST}
    return {name for name, value in own.items() if value != fast[name]}
