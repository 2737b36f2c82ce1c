"""`qkv plot`: the curves of runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands


def add_plot(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw the curves of runs to a PNG",
        description="Draws loss, BLEU, learning rate and speed of one or more runs.",
        epilog="examples:\n"
        "  qkv plot run/ other-run/ --output curves.png\n"
        "  qkv plot base/ fast/ --over minutes --only quality      # what each has learned in the same time",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories")
    parser.add_argument("--output", type=Path, metavar="PNG", help="default: curves.png in the first run directory")
    parser.add_argument("--over", choices=["steps", "minutes"], default="steps", help="default: steps")
    parser.add_argument("--only", choices=["loss", "quality", "rate", "speed"], help="one of the four (default: all)")
    parser.set_defaults(run=_plot)


def _plot(options: argparse.Namespace) -> None:
    from qkv.plot import plot

    output = options.output or options.runs[0] / "curves.png"
    plot(options.runs, output, over=options.over, only=options.only)
    print(output)
