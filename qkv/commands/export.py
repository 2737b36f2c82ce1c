"""`qkv export`: a run as a model that translates on any CPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands


def add_export(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "export",
        help="make a model that translates on any CPU without torch",
        description="Writes the model of a run for translating on CPUs: smaller, faster, and without torch. "
        "`qkv translate` and `qkv evaluate` take it in place of the run.",
        epilog="examples:\n"
        "  qkv export run/ --output model/\n"
        "  qkv export run/ --output model/ --precision float32 --no-shortlist     computes as the run does\n"
        "  qkv translate model/ < in.en > out.fr",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the exported model goes")
    parser.add_argument(
        "--precision", choices=["int8", "float32"], default="int8", help="of weights and products (default: int8)"
    )
    parser.add_argument(
        "--no-shortlist",
        action="store_false",
        dest="shortlist",
        help="look at the whole vocabulary, not at what the words of a sentence can need",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data it learned from (default: the run's own)")
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    from qkv.export import export

    export(
        options.directory, options.output, precision=options.precision, shortlist=options.shortlist, data=options.data
    )
    print(options.output)  # noqa: T201 - what was made, for whoever goes on with it
