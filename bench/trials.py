"""Recipes side by side at equal time on one GPU: held-out loss and BLEU of each after the steps its speed allows.

    python -m bench.trials --data data/ --seconds 50                     # every trial
    python -m bench.trials --data data/ --only rows --only fast          # fast, and those with "rows" in their name
    python -m bench.trials --list
    python -m bench.trials --table trials.jsonl                          # what came of them so far

Each trial is a run of its own, in this process. First the speed is measured, on steps that are thrown away (once for
all trials whose steps do the same work); then it gets as many steps as fit the time. One JSON line a trial is added to
--output as it comes, and trials that are there already are passed over: a machine may be taken away at any moment, and
the same command goes on.

Subword sampling is a matter of the data. Its two trials need the same corpus and held-out pairs, cut by a vocabulary
that has probabilities; a loss in nats a token can be compared between these two only:

    qkv prepare train.en train.de --recipe base --set text.algorithm=unigram --output unigram/
    qkv prepare train.en train.de --recipe base --set text.algorithm=unigram --set text.segmentations=4 \\
        --tokenizer unigram/tokenizer.model --output sampled/
    python -m bench.trials --data data/ --unigram unigram/ --sampled sampled/ --only unigram

Rows of more than 128 positions do not fit the tiles of our attention kernel: there it is the library's, which the table
says. Pairs that do not fit rows of 64 or 96 are left out of training, and not of what is held out. Without a GPU,
--set makes models small enough to rehearse with.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.options import above_zero, told
from bench.trial_results import drop_half_a_line, results_in, row, table
from bench.trial_table import COMMON, COSTS_NOTHING, TRIALS, Trial, varied
from qkv.commands.arguments import changed_settings, changes_argument
from qkv.config import Config
from qkv.devices import choose_device, choose_kernels, release_memory
from qkv.errors import ConfigError, Stopped
from qkv.prepare import Prepared
from qkv.progress import duration
from qkv.recipes import recipe
from qkv.settings import override_all
from qkv.training import train_prepared
from qkv.training.feeding import ramp_of
from qkv.training.speed import steps_a_second

_BESIDE = 20.0
"""Seconds of a trial, about, in which it does not learn: it lays out its rows, translates, and saves its weights."""
_MEASURING = 3.0
_BY_TIME = {"training.steps", "training.validate_every", "training.save_every"}
_TILED = 128
"""The widest row that attention's own kernel takes (`layers.gpu.attention.WIDEST`, which needs Triton to be read)."""


def main() -> int:
    """The exit code: 0, or that of what is wrong with what was asked for, or 1 where a trial failed."""
    parser = _parser()
    options = parser.parse_args()
    return told("bench.trials", lambda: _run(parser, options))


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.table:
        if not options.table.is_file():
            raise ConfigError(f"--table {options.table}: there is no such file; --output of an earlier command is one")
        print(table(results_in(options.table)))
        return 0
    unknown = [part for part in options.only if not any(_wanted(name, [part]) for name in TRIALS)]
    if unknown:
        parser.error(f"no trial has {' or '.join(map(repr, unknown))} in its name; --list shows them all")
    chosen = {name: one for name, one in TRIALS.items() if _wanted(name, options.only)}
    if options.list:
        print("\n".join(chosen))
        return 0
    trials = _to_run(chosen, options)
    kinds = {_same_work(trial) for trial in trials.values()}
    expected = (options.seconds + _BESIDE) * len(trials) + _BESIDE * len(kinds)
    print(f"trials to run: {len(trials)} of {options.seconds:g} s each, about {duration(expected)} in all", flush=True)
    drop_half_a_line(options.output)
    begun, failed = time.monotonic(), 0
    for number, result in enumerate(results(trials, options), start=1):
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        failed += "error" in result
        left = (time.monotonic() - begun) / number * (len(trials) - number)
        print(f"{row(result)} · {number} of {len(trials)}, about {duration(left)} left", flush=True)
    print(table(results_in(options.output)))
    if failed:
        print(f"bench.trials: {failed} of {len(trials)} trials failed; the table says why", file=sys.stderr)
    return 1 if failed else 0


def _to_run(chosen: Mapping[str, Trial], options: argparse.Namespace) -> dict[str, Trial]:
    """Those that have data and no result yet; what none of them could do with is told before any begins."""
    if not options.output.parent.is_dir():
        raise ConfigError(f"--output {options.output}: the folder {options.output.parent} is not there")
    if options.output.is_dir():
        raise ConfigError(
            f"--output {options.output} is a folder; give a file, such as {options.output / 'trials.jsonl'}"
        )
    given = {name: one for name, one in chosen.items() if getattr(options, one.data) is not None}
    if not given:
        needed = sorted({f"--{one.data}" for one in chosen.values()})
        raise ConfigError(f"nothing to train on; give {' or '.join(needed)}: a directory that qkv prepare wrote")
    for name in chosen.keys() - given.keys():
        print(f"{name}: needs --{chosen[name].data}")
    changes = changed_settings(options)
    for name in changes:
        if name.startswith(("data.", "text.")):
            raise ConfigError(f"--set {name}: that is as the data was prepared; prepare it otherwise")
        if name in _BY_TIME:
            raise ConfigError(f"--set {name}: that follows from the time of a trial, which --seconds says")
    wrong = []
    for trial in given.values():
        try:
            config_of(trial, changes)
        except ConfigError as error:
            wrong.append(error)
    if len(wrong) == len(given):
        raise wrong[0]
    there = [one for one in results_in(options.output) if "error" not in one]
    return {name: one for name, one in given.items() if not _is_among(there, name, one, options)}


def results(trials: Mapping[str, Trial], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What came of each trial; one that fails says why, and costs the others nothing."""
    speeds: dict[tuple[object, int], float] = {}
    for name, trial in trials.items():
        begun = time.monotonic()
        result = _question(name, trial, options)
        try:
            result |= attempt(trial, options, speeds)
        except Stopped as stopped:
            # Its run lay in a folder that is gone.
            raise Stopped(
                f"stopped during {name!r}; the same command begins with that", code=stopped.exit_code
            ) from None
        except Exception as error:  # noqa: BLE001
            result |= {"error": f"{type(error).__name__}: {error}"}
        # Only here is the error gone, and with it all that it led to.
        release_memory(choose_device("auto"))
        yield result | {"wall": time.monotonic() - begun}


def attempt(trial: Trial, options: argparse.Namespace, speeds: dict[tuple[object, int], float]) -> dict[str, Any]:
    """A run of as many steps as its speed allows, and how good it is in the end."""
    prepared = Prepared.open(getattr(options, trial.data))
    config = prepared.applied_to(config_of(trial, changed_settings(options)))
    work, log = _same_work(trial), options.output.with_name(f"{options.output.name}.log")
    with log.open("a", encoding="utf-8") as file, redirect_stderr(file), tempfile.TemporaryDirectory() as directory:
        for rows, _, _ in ramp_of(config.training).stages(config.rows_a_step):
            # Small steps take more than their share of the time, and each size sets up kernels of its own.
            if (work, rows) not in speeds:
                alike = {"tokens_per_batch": rows * config.row_width, "ramp_steps": 0}
                speeds[work, rows] = steps_a_second(config.with_changes(training=alike), prepared, _MEASURING)
        steps = steps_within(
            config, options.seconds, {rows: speed for (one, rows), speed in speeds.items() if one == work}
        )
        ends = dict.fromkeys((name.removeprefix("training.") for name in _BY_TIME), steps)
        run = Path(directory) / "run"
        train_prepared(prepared.directory, run, config.with_changes(training=ends))
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    tried = next(one for one in reversed(lines) if one["kind"] == "validation")
    found = {name: tried.get(name) for name in ("nll", "bleu", "seconds")}
    return {**found, "steps": steps, "tokens_per_second": _mean_speed(lines), "note": note(config)}


def _mean_speed(lines: list[dict[str, Any]]) -> float:
    """Over all steps that a log reports."""
    reports = [line for line in lines if line["kind"] == "train"]
    seconds = [report["seconds"] for report in reports]
    taken = [after - before for before, after in itertools.pairwise([0.0, *seconds])]
    return float(np.average([report["tokens_per_second"] for report in reports], weights=taken))


def config_of(trial: Trial, changes: Mapping[str, str]) -> Config:
    for name in changes.keys() & varied(trial):
        raise ConfigError(
            f"--set {name} would undo what this trial is about; leave that out, or choose others by --only"
        )
    settings = {**COMMON, **trial.settings, **changes}
    config = override_all(recipe("base"), {name: str(value) for name, value in settings.items()})
    if config.training.tokens_per_batch == "auto":
        raise ConfigError("trials are compared at equal batches: training.tokens_per_batch has to be a number")
    return config


def steps_within(config: Config, seconds: float, speeds: Mapping[int, float]) -> int:
    """How many steps fit the time, where `speeds` tells how many of so many rows fit a second."""
    steps = 0
    for rows, begin, end in ramp_of(config.training).stages(config.rows_a_step):
        fitting = int(seconds * speeds[rows])
        taken = fitting if end is None else min(fitting, end - begin)
        steps += taken
        seconds -= taken / speeds[rows]
    return max(1, steps)


def note(config: Config) -> str:
    """What is other than in the trials beside it."""
    fast = choose_kernels(config.training.kernels, choose_device(config.training.device))
    if not fast:
        return "plain kernels"
    return "the library's attention" if config.row_width > _TILED else ""


def _question(name: str, trial: Trial, options: argparse.Namespace) -> dict[str, Any]:
    """What a result is the answer to."""
    data = Prepared.open(getattr(options, trial.data)).fingerprint
    changes = changed_settings(options)
    settings = {each: str(value) for each, value in {**trial.settings, **changes}.items()}
    asked = {
        "name": name, "asked": options.seconds, "set": options.changes, "settings": settings, "data": data,
        "device": _device(),
    }  # fmt: skip
    if trial.data == "sampled" and options.unigram is not None:
        # The same corpus, cut by the same vocabulary: the one pair of data that may be compared.
        asked["beside"] = Prepared.open(options.unigram).fingerprint
    return {**asked, "commit": _commit()}


def _device() -> str:
    device = choose_device("auto")
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def _is_among(results: list[dict[str, Any]], name: str, trial: Trial, options: argparse.Namespace) -> bool:
    question = _question(name, trial, options)
    return any({key: one.get(key) for key in question} == question for one in results)


def _same_work(trial: Trial) -> object:
    """The same for trials whose steps do the same work."""
    settings = {name: value for name, value in trial.settings.items() if name not in COSTS_NOTHING}
    return trial.data, tuple(sorted(settings.items()))


def _wanted(name: str, parts: list[str]) -> bool:
    """A whole name is that of one trial, anything else is part of some."""
    return not parts or name in parts or any(part in name for part in parts if part not in TRIALS)


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    asked = [git, "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a directory that qkv prepare wrote")
    parser.add_argument("--unigram", type=Path, help="another, of the same corpus with text.algorithm=unigram")
    parser.add_argument("--sampled", type=Path, help="another, with several text.segmentations and the same vocabulary")
    parser.add_argument("--seconds", type=above_zero, default=50.0, help="of steps for each trial (default: 50)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this trial, or those with this in their name"
    )
    changes_argument(parser)
    parser.add_argument(
        "--output", type=Path, default=Path("trials.jsonl"), help="what came of them, added line by line"
    )
    parser.add_argument("--list", action="store_true", help="show the trials and stop")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print what a file of trials says and stop")
    return parser


if __name__ == "__main__":
    sys.exit(main())
