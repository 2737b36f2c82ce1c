"""Learning on from what another has learned, with other text: its weights are where a new run begins.

The new run keeps a copy of them, and of the settings they were learned with: once it has begun, it needs the other no
more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.checkpoint import Saved, read, read_state, write
from qkv.config import Config, ModelConfig, TextConfig
from qkv.errors import CheckpointError, ConfigError
from qkv.prepare import Prepared
from qkv.prepare.mix import Mix
from qkv.recipes.adapting import PASSES, adapting
from qkv.run import RunDirectory
from qkv.training.before import EXPORTED, Before, RunBefore, before_at, looks_of
from qkv.training.lengths import often_enough, target_tokens
from qkv.training.optimizer import paper_learning_rate

_SHARE = 10
"""Of the steps and of the rate of the run before, as its inverse: enough to learn another kind of text, and not so much
that what was learned is forgotten."""
_WARMING_UP = 20
_FREE = {"dropout"}
"""Settings of a model that its weights do not depend on."""


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
        "schedule": "linear",
        "learning_rate": peak / _SHARE,
        "decay_from": 0.0,
        "ramp_steps": 0,
        "dropout_after": 0,
    }
    return _lasting(config.with_changes(training=changes), steps)


def adapted_export(config: Config, *, steps: int | None = None) -> Config:
    """The settings to learn on with, likewise, after an exported model with these."""
    options = adapting()
    changes = {
        **dataclasses.asdict(options),
        "tokens_per_batch": max(options.tokens_per_batch, config.data.row_width),
        "label_smoothing": config.training.label_smoothing,
    }
    return _lasting(config.with_changes(training=changes), options.steps if steps is None else steps)


def _lasting(config: Config, steps: int) -> Config:
    changes = {"steps": steps, "warmup_steps": max(1, steps // _WARMING_UP), **often_enough(config.training, steps)}
    return config.with_changes(training=changes)


def adapted_from(before: Path, output: Path | None, *, steps: int | None = None) -> Config:
    """The settings to learn on with from a run or an exported model, or from what the new run has kept of it.

    A run that was itself adapted had a tenth of steps and rate already: it is learned on as from the first.
    """
    first = known_of(before, None if output is None else RunDirectory(output)).first()
    return (adapted_export if first.exported else adapted)(first.config, steps=steps)


def fitting_steps(before: Path, output: Path | None, config: Config, text: Prepared | Mix) -> int | None:
    """How long to learn on from an exported model where nobody says: some times through the text; a run's own steps
    tell, and it gets None."""
    tokens = config.training.tokens_per_batch
    known = known_of(before, None if output is None else RunDirectory(output))
    if not known.first().exported:
        return None
    if tokens == "auto":
        raise ConfigError(
            "how many steps go through the text cannot be known before training.tokens_per_batch=auto is a number; "
            "give training.steps too"
        )
    return max(1, PASSES * target_tokens(text, known.tokenizer_file, config) // tokens)


def known_of(adapt: Path, run: RunDirectory | None) -> Before:
    """What is learned on from, or the new run where that has kept what is needed of it."""
    if (before := to_adapt(adapt, run)) is not None:
        return before
    assert run is not None, "only a new run may do without what was before"
    return RunBefore(run)


def to_adapt(adapt: Path | None, run: RunDirectory | None) -> Before | None:
    """That whose weights are still to be copied: none where the new run has them, and has learned on from them."""
    if adapt is None or (run is not None and run.start.is_dir() and (run.learned or not adapt.is_dir())):
        return None
    return before_at(adapt)


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
        raise ConfigError(f"{run.path} did not begin with the weights of another; give --output another directory")
    saved = before.weights()
    # What is damaged is told before anything is prepared.
    looks_of(before)
    learned = before.config()
    unlike = _unlike(dataclasses.asdict(learned.model), config.model)
    if unlike:
        do, them = ("does", "it") if len(unlike) == 1 else ("do", "them")
        given = ", ".join(f"model.{name}={now}" for name, _, now in unlike)
        have = ", ".join(str(was) for _, was, _ in unlike)
        raise ConfigError(f"{given} {do} not fit {before.path}'s weights, which have {have}; leave {them} out")
    _require_text(before, learned.text, config.text)
    if config.data.typography != (typography := learned.data.typography):
        raise ConfigError(
            f"{before.path} has learned with data.typography={typography}, and the new text would be read with "
            f"data.typography={config.data.typography}; prepare it with --set data.typography={typography}"
        )
    _require_vocabulary(saved.state, vocabulary, before)


def _require_vocabulary(state: Mapping[str, Any], vocabulary: str | None, before: Before) -> None:
    if vocabulary is not None and state.get("tokenizer", vocabulary) != vocabulary:
        raise ConfigError(
            f"the text was prepared with another vocabulary than that of {before.path}; prepare it with "
            f"--tokenizer {before.tokenizer_file}"
        )


def tagged_alike(files: Sequence[Path], config: Config, known: Before) -> Config:
    """The settings with a tag before the sources of one direction, where there were several before."""
    one = len(Mix.of(files, config.text).directions) == 1
    return config.with_changes(text={"tagged": True}) if one and known.config().text.directions is not None else config


def _require_text(before: Before, learned: TextConfig, now: TextConfig) -> None:
    if learned.directions is None and now.directions is not None and not now.tagged:
        raise ConfigError(
            f"{before.path} translates in one direction only; adapt it with text of that direction (leave out "
            f"--directions {now.directions})"
        )
    if (now.directions is None) != (learned.directions is None):
        has, would = ("no", "one") if learned.directions is None else ("a", "none")
        remedy = "leave text.tagged out" if now.tagged else "prepare it with --set text.tagged=true"
        raise ConfigError(
            f"{before.path} reads {has} tag of the target's language before a source, and with the new text there "
            f"would be {would}: {remedy}"
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


def require_named(files: Sequence[Path], before: Before) -> None:
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


def begin_with(run: RunDirectory, before: Before) -> None:
    """Copies the weights with which a run begins that has learned nothing yet, and the settings they belong to."""
    saved, looks = before.weights(), looks_of(before)
    if looks is not None:
        looks.save(run.path)
    write(run.start, saved.tensors, {**saved.state, **before.first().as_state()})


def start_of(run: RunDirectory, config: Config, prepared: Prepared) -> Saved | None:
    """The weights with which a run begins, where these are another's; they must be of this model and vocabulary."""
    if not run.start.is_dir():
        return None
    begin_again = f"remove {run.path} and begin again"
    try:
        saved = read(run.start, weights_only=True)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; {begin_again}") from error
    unlike = _unlike(saved.state.get("model", {}), config.model)
    changed = ", ".join(f"model.{name} from {was} to {now}" for name, was, now in unlike)
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
    if EXPORTED in state:
        return {EXPORTED: state[EXPORTED]}
    return {"step": state.get("weights_of_step", 0), "data": state.get("data", "")}


def _unlike(learned: Mapping[str, Any], model: ModelConfig) -> list[tuple[str, Any, Any]]:
    """Settings of a model that are not those its weights were learned with: what they are called, were and are."""
    now = dataclasses.asdict(model)
    names = sorted(name for name in now.keys() - _FREE if name in learned and now[name] != learned[name])
    return [(name, learned[name], now[name]) for name in names]
