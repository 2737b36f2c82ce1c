"""`qkv train`: a model of parallel text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands, deadline_of, ended, speaks, time_argument
from qkv.commands.settings import config_of, corpus_arguments, refuse_with_data
from qkv.directories import require_run, was_exported
from qkv.errors import ConfigError
from qkv.progress import tell


def add_train(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "train",
        help="train a translator from parallel text",
        description="Prepares parallel text and trains a model on it. A run already begun goes on when the same "
        "command is given again.",
        epilog="examples:\n"
        "  qkv train train.en train.fr --recipe base --output run/\n"
        "  qkv train pairs.tsv.xz --recipe small --set training.steps=500 --output run/\n"
        "  qkv train --data data/ --recipe big --output run/\n"
        "  qkv train train.en train.fr --recipe base --output run/ --max-time 25m\n"
        "  qkv train mine.en mine.fr --adapt run/ --output adapted/       learn on, from other text\n"
        "  qkv train mine.en mine.fr --adapt models/default --output adapted/\n"
        "  qkv train train.en train.fr --recipe base --dry-run",
    )
    corpus_arguments(parser, required=False)
    parser.add_argument("--data", type=Path, metavar="DIR", help="data that `qkv prepare` wrote, instead of files")
    parser.add_argument("--output", type=Path, metavar="RUN", help="the run directory")
    parser.add_argument(
        "--adapt",
        type=Path,
        metavar="RUN",
        help="begin with the weights, vocabulary and settings of this run, for a tenth of its steps at a tenth of its "
        "learning rate; or with those of an exported model, for about three times through the text; unless --set says "
        "otherwise",
    )
    time_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the settings and what the run needs, and stop")
    # No recipe is asked for unless one is named.
    parser.set_defaults(run=_train, recipe=None)


def _train(options: argparse.Namespace) -> int:
    if options.data is not None:
        refuse_with_data(options)
    if options.adapt is not None:
        _refuse_with_adapt(options)
    if options.output is None and not options.dry_run:
        raise ConfigError("train needs --output, the directory of the run")
    if bool(options.files) == bool(options.data):
        raise ConfigError("train needs either files of parallel text or --data, a directory that `qkv prepare` wrote")
    config = config_of(options)
    from qkv.training import train, train_prepared
    from qkv.training.plan import plan_prepared_training, plan_training

    deadline = deadline_of(options)
    others = {
        "valid": options.valid, "test": options.test, "tokenizer": options.tokenizer, "adapt": options.adapt
    }  # fmt: skip
    if options.dry_run:
        plan = (
            plan_training(options.files, options.output, config, **others)
            if options.data is None
            else plan_prepared_training(options.data, options.output, config, options.adapt)
        )
        if speaks():
            print(plan)
        return 0
    if options.data is not None:
        return ended(
            finished=train_prepared(options.data, options.output, config, adapt=options.adapt, deadline=deadline)
        )
    return ended(finished=train(options.files, options.output, config, **others, deadline=deadline, say=tell))


def _refuse_with_adapt(options: argparse.Namespace) -> None:
    """What a run has settled that is learned on from cannot be asked for again."""
    # What the new run has begun with is kept in it.
    kept = options.output is not None and (options.output / "start").is_dir()
    if not kept and not was_exported(options.adapt):
        require_run(options.adapt, "name one that `qkv train` has made, or a model of `qkv export`")
    given = [f"--{name}" for name in ("recipe", "tokenizer") if getattr(options, name) is not None]
    if given:
        raise ConfigError(f"{', '.join(given)}: settled by {options.adapt}; leave it out, or change settings by --set")
