"""Learning on from what another run has learned, with other text: its weights are where a new run begins.

A copy of them is kept in the new run, which from then on needs the other no more.
"""

from __future__ import annotations

import dataclasses

from qkv.checkpoint import RunDirectory, Saved, final_state, read, write
from qkv.config import Config
from qkv.errors import CheckpointError, ConfigError
from qkv.prepare import Prepared
from qkv.training.optimizer import learning_rate

_SHARE = 10
"""Of the steps and of the rate of the run before, as its inverse: enough to learn another kind of text, and not so much
that what was learned is forgotten."""
_WARMING_UP = 20
_SAVES = 40
_TOLD = 10
_FREE = {"dropout"}
"""Settings of a model that its weights do not depend on."""


def adapted(config: Config) -> Config:
    """The settings to learn on with, where nothing else is asked for, after a run with these.

    The rate begins at a tenth of its peak and falls in a line: there is no beginning to be careful about.
    """
    options = config.training
    steps = max(1, options.steps // _SHARE)
    changes = {
        "steps": steps,
        "schedule": "linear",
        "learning_rate": learning_rate(options, config.model.width, options.warmup_steps) / _SHARE,
        "warmup_steps": max(1, steps // _WARMING_UP),
        "decay_from": 0.0,
        "ramp_steps": 0,
        "dropout_after": 0,
        "save_every": max(1, min(options.save_every, steps // _SAVES)),
        "validate_every": max(1, min(options.validate_every, steps // _TOLD)),
        "report_every": max(1, min(options.report_every, steps // _TOLD)),
    }
    return config.with_changes(training=changes)


def require_adaptable(before: RunDirectory, run: RunDirectory | None, config: Config) -> None:
    """Refuses settings that the weights of the run before do not fit, and a run that did not begin with such."""
    if run is not None and before.path.resolve() == run.path.resolve():
        raise ConfigError(f"{run.path} cannot adapt itself; give --output another directory")
    if not before.learned:
        raise ConfigError(
            f"{before.path} has no weights that could be learned on from; name a run that `qkv train` has trained, not "
            "an exported model"
        )
    learned = before.config()
    now, then = (dataclasses.asdict(one.model) for one in (config, learned))
    changed = [
        f"model.{name} from {then[name]} to {now[name]}" for name in now.keys() - _FREE if now[name] != then[name]
    ]
    if changed:
        raise ConfigError(
            f"{before.path} has learned weights that do not fit {', '.join(sorted(changed))}; leave that out"
        )
    if (config.text.directions is None) != (learned.text.directions is None):
        has, would = ("no", "one") if learned.text.directions is None else ("a", "none")
        raise ConfigError(
            f"{before.path} reads {has} tag of the target's language before a source, and with the new text there "
            f"would be {would}: a model of several directions is adapted with text of two of them or more, and a model "
            "of one direction with text of that one"
        )
    for name in ("source_language", "target_language"):
        code, known = getattr(config.text, name), getattr(learned.text, name)
        if None not in (code, known) and code != known:
            raise ConfigError(
                f"the {name.replace('_', ' ')} of {before.path} is {known}, and that of the new text {code}"
            )
    if run is not None and run.learned and not run.start.is_dir():
        raise ConfigError(f"{run.path} did not begin with the weights of another run; give --output another directory")


def begin_with(run: RunDirectory, before: RunDirectory, prepared: Prepared) -> None:
    """Copies the weights with which a new run begins; one that has them already may have no others."""
    saved = before.weights()
    if saved.state.get("tokenizer", prepared.tokenizer().fingerprint) != prepared.tokenizer().fingerprint:
        raise ConfigError(
            f"{prepared.directory} was prepared with another vocabulary than that of {before.path}; prepare it with "
            f"--tokenizer {before.tokenizer_file}"
        )
    if not run.start.is_dir():
        step = saved.state.get("weights_of_step", saved.state.get("step", 0))
        weights = {"weights": saved.tensors["weights"]}
        write(run.start, weights, final_state(saved.state, str(saved.state.get("weights", "last")), step))
        return
    ours = read(run.start, weights_only=True).tensors["weights"]
    if ours.keys() != saved.tensors["weights"].keys() or any(
        not ours[name].equal(tensor) for name, tensor in saved.tensors["weights"].items()
    ):
        raise ConfigError(
            f"{run.path} began with other weights than those that {before.path} has now; give --output another "
            "directory"
        )


def start_of(run: RunDirectory) -> Saved | None:
    """The weights with which a run began, where these are another's."""
    try:
        return read(run.start, weights_only=True) if run.start.is_dir() else None
    except CheckpointError as error:
        raise CheckpointError(f"{error}; remove {run.path} and begin again") from error
