"""`qkv recipes`: the recipes, or every setting of one."""

from __future__ import annotations

import argparse
from typing import Any

from qkv.commands.arguments import Commands
from qkv.recipes import RECIPES, recipe
from qkv.settings import settings


def add_recipes(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "recipes",
        help="list the recipes, or every setting of one",
        description="Lists the recipes; with a name, prints every setting of that recipe, as `--set` takes them.",
        epilog="examples:\n  qkv recipes\n  qkv recipes base",
    )
    parser.add_argument("name", nargs="?", metavar="RECIPE", help="of which every setting is printed")
    parser.set_defaults(run=_recipes)


def _recipes(options: argparse.Namespace) -> None:
    if options.name is None:
        for name, function in RECIPES.items():
            print(f"{name:16} {(function.__doc__ or '').splitlines()[0]}")
    else:
        for name, value in settings(recipe(options.name)):
            print(f"{name} = {'none' if value is None else value}")
