"""`qkv average`: the mean of a run's last checkpoints as its weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.directories import require_run


def add_average(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "average",
        help="replace a run's final weights by the mean of its last checkpoints",
        description="Replaces a run's final weights by the mean of its last checkpoints.",
        epilog="example:\n  qkv average run/ --last 5",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--last", type=int, default=5, metavar="N", help="how many checkpoints (default: 5)")
    parser.set_defaults(run=_average)


def _average(options: argparse.Namespace) -> None:
    require_run(options.directory)
    from qkv.run import RunDirectory

    steps = RunDirectory.open(options.directory).average_last(options.last)
    print(f"{options.directory}: the weights are now the mean of those after steps {', '.join(map(str, steps))}")
