"""Which settings a command is to learn by: a recipe, or those of data or of a model, and what changes them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from qkv.commands.arguments import changed_settings, changes_argument
from qkv.config import Config
from qkv.errors import ConfigError
from qkv.recipes import recipe
from qkv.settings import override_all


def corpus_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "files",
        nargs="+" if required else "*",
        type=Path,
        metavar="FILE",
        help="source and target, line by line (plain, .gz or .xz), or pairs in files named *.tsv[.gz|.xz]; or one "
        "*.toml that says which corpora, in which directions and how often",
    )
    parser.add_argument(
        "--valid",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="held-out pairs for validation, in the same forms",
    )
    parser.add_argument(
        "--test",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="test pairs; warns if any are in the training text",
    )
    parser.add_argument("--tokenizer", type=Path, metavar="MODEL", help="use this vocabulary instead of learning one")
    parser.add_argument("--from", dest="source_language", metavar="CODE", help="the source's language, such as en")
    parser.add_argument("--to", dest="target_language", metavar="CODE", help="the target's language, such as fr")
    parser.add_argument(
        "--directions", metavar="LIST", help="learn several at once, such as en-de,de-en (default: as the files stand)"
    )
    recipe_arguments(parser, default="base")


def recipe_arguments(parser: argparse.ArgumentParser, *, default: str) -> None:
    # Not argparse's choices: an unknown recipe gets a suggestion instead of a list of thirty.
    parser.add_argument(
        "--recipe", default=default, metavar="RECIPE", help=f"default: {default}; `qkv recipes` lists them"
    )
    changes_argument(parser)


def refuse_with_data(options: argparse.Namespace) -> None:
    """What prepared data has settled cannot be asked for again."""
    given = [
        f"{name}={value}" for name, value in changed_settings(options).items() if _unlike(options.data, name, value)
    ]
    given += [f"--{name}" for name in ("valid", "test", "tokenizer") if getattr(options, name, None)]
    languages = {"from": "source_language", "to": "target_language", "directions": "directions"}
    given += [f"--{word}" for word, name in languages.items() if getattr(options, name, None)]
    if given:
        raise ConfigError(
            f"{', '.join(given)}: settled when {options.data} was prepared; leave it out or prepare again"
        )


def _unlike(data: Path, name: str, value: str) -> bool:
    """Whether a setting of text or data is to be another than it was when these were prepared."""
    if not name.startswith(("text.", "data.")):
        return False
    from qkv.prepare import Prepared

    settled = Prepared.open(data).applied_to(Config())
    return override_all(settled, {name: value}) != settled


def config_of(options: argparse.Namespace) -> Config:
    """The settings that the arguments ask for, each of them checked."""
    changes = changed_settings(options)
    adapting = getattr(options, "adapt", None) is not None
    return _asked_for(_adapted(options, changes) if adapting else recipe(options.recipe or "base"), options, changes)


def _asked_for(chosen: Config, options: argparse.Namespace, changes: Mapping[str, str]) -> Config:
    if getattr(options, "data", None) is not None:
        from qkv.prepare import Prepared

        # Before the changes: they have to fit the rows of the data, not those of the recipe.
        chosen = Prepared.open(options.data).applied_to(chosen)
    config = override_all(chosen, changes)
    languages = {name: getattr(options, name, None) for name in ("source_language", "target_language", "directions")}
    return config.with_changes(text={name: code for name, code in languages.items() if code is not None})


def _adapted(options: argparse.Namespace, changes: Mapping[str, str]) -> Config:
    """The settings of what is adapted; how often is told and saved fits the steps, asked for or those of the text."""
    from qkv.prepare import Prepared
    from qkv.prepare.mix import Mix
    from qkv.training import adapted_from, fitting_steps

    chosen = adapted_from(options.adapt, options.output)
    asked = _asked_for(chosen, options, changes)
    steps: int | None = asked.training.steps
    if "training.steps" not in changes:
        text = Mix.of(options.files, asked.text) if options.data is None else Prepared.open(options.data)
        steps = fitting_steps(options.adapt, options.output, asked, text)
    return adapted_from(options.adapt, options.output, steps=steps)
