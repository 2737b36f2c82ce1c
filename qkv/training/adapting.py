"""Learning on from what another run has learned, with other text: its weights are where a new run begins.

The new run keeps a copy of them, and of the settings they were learned with: once it has begun, it needs the other no
more.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.checkpoint import RunDirectory, Saved, final_state, read, read_state, write
from qkv.config import Config, ModelConfig, TextConfig, from_json, to_json
from qkv.errors import CheckpointError, ConfigError
from qkv.prepare import Prepared
from qkv.prepare.mix import Mix
from qkv.training.lengths import often_enough
from qkv.training.optimizer import paper_learning_rate

_SHARE = 10
"""Of the steps and of the rate of the run before, as its inverse: enough to learn another kind of text, and not so much
that what was learned is forgotten."""
_WARMING_UP = 20
_FREE = {"dropout"}
"""Settings of a model that its weights do not depend on."""
_SETTINGS = "config"
"""In the state beside the weights: all settings of the run that they are of."""


def adapted(config: Config, *, steps: int | None = None) -> Config:
    """The settings to learn on with, where nothing else is asked for, after a run with these.

    The rate is soon at a tenth of its peak and falls in a line: there is no beginning to be careful about. Without
    `steps`, there are a tenth of those of the run.
    """
    options = config.training
    steps = max(1, options.steps // _SHARE) if steps is None else steps
    peak = options.learning_rate
    if options.schedule == "paper":
        peak *= paper_learning_rate(options.warmup_steps, config.model.width, options.warmup_steps)
    changes = {
        "steps": steps,
        "schedule": "linear",
        "learning_rate": peak / _SHARE,
        "warmup_steps": max(1, steps // _WARMING_UP),
        "decay_from": 0.0,
        "ramp_steps": 0,
        "dropout_after": 0,
        **often_enough(options, steps),
    }
    return config.with_changes(training=changes)


def adapted_from(before: Path, output: Path | None, *, steps: int | None = None) -> Config:
    """The settings to learn on with from a run, or from what the new run has kept of it.

    A run that was itself adapted had a tenth of steps and rate already: it is learned on as from the first.
    """
    new = None if output is None else RunDirectory(output)
    run = to_adapt(before, new) or new
    assert run is not None, "only a new run may do without the one before"
    return adapted(_settings(run), steps=steps)


def _settings(run: RunDirectory) -> Config:
    """Those of a run; where it was adapted itself, it learns as the first one did."""
    if not run.start.is_dir():
        return run.config()
    try:
        first = from_json(json.dumps(read_state(run.start)[_SETTINGS]))
        return dataclasses.replace(run.config(), training=first.training)
    except (KeyError, ConfigError) as error:
        raise CheckpointError(f"{run.start} is damaged: {error}") from error


def to_adapt(adapt: Path | None, run: RunDirectory | None) -> RunDirectory | None:
    """The run whose weights are still to be copied: none where the new one has them, and has learned on from them."""
    if adapt is None or (run is not None and run.start.is_dir() and (run.learned or not adapt.is_dir())):
        return None
    return RunDirectory.open(adapt)


def require_adaptable(adapt: Path | None, run: RunDirectory | None, config: Config, vocabulary: str | None) -> None:
    """Refuses settings that the weights do not fit which a run is to begin with, or has begun with.

    `vocabulary` is the fingerprint of that of the text, where it is known.
    """
    if run is not None and run.start.is_dir() and adapt is None and not run.learned:
        raise ConfigError(f"{run.path} was begun with --adapt; give that again, or another --output")
    before = to_adapt(adapt, run)
    if before is None:
        return
    if run is not None and before.path.resolve() == run.path.resolve():
        raise ConfigError(f"{run.path} cannot adapt itself; give --output another directory")
    if run is not None and run.learned:
        raise ConfigError(f"{run.path} did not begin with the weights of another run; give --output another directory")
    if not before.learned:
        raise ConfigError(
            f"{before.path} has no weights that could be learned on from; name a run that `qkv train` has trained, not "
            "an exported model"
        )
    learned = before.config()
    saved = before.weights()
    before.require_model(learned.model, saved.directory, saved.state)
    changed = _changed(dataclasses.asdict(learned.model), config.model)
    if changed:
        raise ConfigError(f"{before.path} has learned weights that do not fit {changed}; leave that out")
    _require_text(before, learned.text, config.text)
    if config.data.typography != (typography := learned.data.typography):
        raise ConfigError(
            f"{before.path} has learned with data.typography={typography}, and the new text would be read with "
            f"data.typography={config.data.typography}; prepare it with --set data.typography={typography}"
        )
    _require_vocabulary(saved.state, vocabulary, before)


def _require_vocabulary(state: Mapping[str, Any], vocabulary: str | None, before: RunDirectory) -> None:
    if vocabulary is not None and state.get("tokenizer", vocabulary) != vocabulary:
        raise ConfigError(
            f"the text was prepared with another vocabulary than that of {before.path}; prepare it with "
            f"--tokenizer {before.tokenizer_file}"
        )


def _require_text(before: RunDirectory, learned: TextConfig, now: TextConfig) -> None:
    if (now.directions is None) != (learned.directions is None):
        has, would = ("no", "one") if learned.directions is None else ("a", "none")
        raise ConfigError(
            f"{before.path} reads {has} tag of the target's language before a source, and with the new text there "
            f"would be {would}: a model of several directions is adapted with text of two of them or more, and a model "
            "of one direction with text of that one"
        )
    for name in ("source_language", "target_language"):
        code, known = getattr(now, name), getattr(learned, name)
        if None not in (code, known) and code != known:
            raise ConfigError(
                f"the {name.replace('_', ' ')} of {before.path} is {known}, and that of the new text {code}"
            )
    if now.right_to_left != learned.right_to_left:
        raise ConfigError(
            f"{before.path} writes its translations {'backwards' if learned.right_to_left else 'forwards'}, "
            "and goes on to: leave text.right_to_left as it was"
        )


def require_named(files: Sequence[Path], before: RunDirectory) -> None:
    """Refuses files whose names tell other languages than those of a run that has one direction."""
    known = before.config().text
    pair = {known.source_language, known.target_language}
    if known.directions is not None or None in pair:
        return
    nothing_asked = dataclasses.replace(known, source_language=None, target_language=None)
    for row in Mix.of(files, nothing_asked).rows:
        if row.pair is not None and {*row.pair} != pair:
            raise ConfigError(
                f"{row.files[0]} is named as {row.pair}, and {before.path} translates {known.source_language} to "
                f"{known.target_language}; name it otherwise if that is what it has"
            )


def begin_with(run: RunDirectory, before: RunDirectory) -> None:
    """Copies the weights with which a run begins that has learned nothing yet, and the settings they belong to."""
    saved = before.weights()
    step = saved.state.get("weights_of_step", saved.state.get("step", 0))
    state = final_state(saved.state, str(saved.state.get("weights", "last")), step)
    kept = {**state, _SETTINGS: json.loads(to_json(_settings(before)))}
    write(run.start, {"weights": saved.tensors["weights"]}, kept)


def start_of(run: RunDirectory, config: Config, prepared: Prepared) -> Saved | None:
    """The weights with which a run begins, where these are another's; they must be of this model and vocabulary."""
    if not run.start.is_dir():
        return None
    begin_again = f"remove {run.path} and begin again"
    try:
        saved = read(run.start, weights_only=True)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {begin_again}") from error
    changed = _changed(saved.state.get("model", {}), config.model)
    if saved.state.get("tokenizer") != prepared.tokenizer().fingerprint:
        changed = "another vocabulary"
    if changed:
        raise CheckpointError(f"{run.start} has weights that do not fit {changed}; {begin_again}")
    return saved


def origin(run: RunDirectory) -> dict[str, Any] | None:
    """What the checkpoints of a run tell of the weights it began with, where these are another's."""
    if not run.start.is_dir():
        return None
    state = read_state(run.start)
    return {"step": state.get("weights_of_step", 0), "data": state.get("data", "")}


def _changed(learned: Mapping[str, Any], model: ModelConfig) -> str:
    now = dataclasses.asdict(model)
    names = sorted(name for name in now.keys() - _FREE if name in learned and now[name] != learned[name])
    return ", ".join(f"model.{name} from {learned[name]} to {now[name]}" for name in names)
