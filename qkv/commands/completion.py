"""`qkv completion`: a script by which a shell completes commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from qkv.commands.arguments import Commands
from qkv.fetch.corpora import CORPORA
from qkv.recipes import RECIPES
from qkv.reproduce.experiments import EXPERIMENTS

# A system to score is a file or a run directory, and a shell completes the path of a directory as that of a file.
_OFFERED: dict[str, dict[str, Any]] = {
    **{key: {"complete": "file"} for key in ("FILE", "MODEL", "PNG", "SYSTEM", "TSV")},
    **{key: {"complete": "directory"} for key in ("DIR", "RUN")},
    "CORPUS": {"choices": list(CORPORA)},
    "EXPERIMENT": {"choices": [*EXPERIMENTS, "table3"]},
    "RECIPE": {"choices": list(RECIPES)},
}
"""What a shell completes an argument with, by what help calls it; `complete` is shtab's word."""


def add_completion(commands: Commands[Any], build_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """`build_parser` makes the parser of all commands, which is what a shell completes by."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in your shell",
        description="Prints a completion script for a shell.",
        epilog="example:\n  qkv completion bash > ~/.local/share/bash-completion/completions/qkv",
    )
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    parser.set_defaults(run=partial(_completion, build_parser=build_parser))


def _completion(options: argparse.Namespace, build_parser: Callable[[], argparse.ArgumentParser]) -> None:
    import shtab

    parser = build_parser()
    for commands in parser._actions:
        for command in commands.choices.values() if isinstance(commands, Commands) else ():
            for action in command._actions:
                # This parser reads no words: what it offers refuses nothing.
                vars(action).update(_OFFERED.get(str(action.metavar), {}))
    print(shtab.complete(parser, options.shell))
