"""`qkv serve`: translations over HTTP, for clients of several protocols."""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.errors import ConfigError
from qkv.serve.settings import PREFIX, Settings, parse, read_settings

_SHORT = {"source": "--from", "target": "--to"}


def add_serve(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "serve",
        help="translate over HTTP, for clients of LibreTranslate, DeepL, Google, Azure and Open Inference",
        description="Answers on 127.0.0.1:5000. Every setting is a flag, a variable of the environment "
        f"({PREFIX}PORT=8080) or a line of the TOML file given by --config (port = 8080); a flag counts more than the "
        "environment, and that more than the file.",
        epilog="examples:\n"
        "  qkv serve                                               all models that are here\n"
        "  qkv serve --model model/ --from en --to fr\n"
        "  qkv serve --config serve.toml --port 8080\n"
        "  qkv serve --keys keys.toml --new-key alice              prints a key, and keeps its hash\n"
        "  curl 127.0.0.1:5000/translate -d q='Good morning.' -d source=en -d target=fr\n"
        "  curl 127.0.0.1:5000/metrics",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of settings")
    parser.add_argument("--new-key", metavar="NAME", help="make an API key, print it, add its hash to --keys, and stop")
    for one in dataclasses.fields(Settings):
        default = "" if one.default == "" else f" (default: {str(one.default).lower()})"
        parser.add_argument(
            _SHORT.get(one.name, f"--{one.name.replace('_', '-')}"),
            dest=one.name,
            type=_typed(one.name),
            metavar=one.metadata["metavar"],
            help=one.metadata["told"] + default,
        )
    parser.set_defaults(run=_serve)


def _typed(name: str) -> Any:
    function = partial(parse, name)
    # argparse tells what a wrong value should have been by this name.
    function.__name__ = name  # type: ignore[attr-defined]
    return function


def _serve(options: argparse.Namespace) -> None:
    settings = read_settings(vars(options), options.config)
    if options.new_key is not None:
        _print_key(settings, options.new_key)
        return
    from qkv.serve.server import serve

    serve(settings)


def _print_key(settings: Settings, name: str) -> None:
    from qkv.serve.keys import new_key

    if not settings.keys:
        raise ConfigError("--new-key needs --keys, the file that its hash is added to")
    # Once, for whoever is to have it: only its hash is kept.
    print(new_key(Path(settings.keys), name))
