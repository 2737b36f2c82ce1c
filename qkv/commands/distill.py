"""`qkv distill`: a student that learns from the translations of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands, deadline_of, ended, time_argument
from qkv.commands.settings import config_of, recipe_arguments, refuse_with_data
from qkv.directories import require_run
from qkv.progress import tell


def add_distill(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "distill",
        help="train a small, quick student on a run's translations",
        description="Translates the training sources with a finished run, the teacher, and trains a student on its "
        "translations. What was stopped goes on when the same command is given again.",
        epilog="examples:\n"
        "  qkv distill run/ --data data/ --output student/\n"
        "  qkv distill run/ --recipe student --set model.encoder_layers=6 --output student/\n"
        "  qkv distill run/ --beam 8 --n-best-by-bleu 8 --also-original --output student/",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="the run directory of the teacher")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="data that `qkv prepare` wrote with the teacher's vocabulary (default: the data in RUN)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="RUN", help="the run directory of the student")
    parser.add_argument("--beam", type=int, default=4, metavar="N", help="width of the teacher's search (default: 4)")
    parser.add_argument("--length-penalty", type=float, metavar="ALPHA", help="default: the teacher's")
    parser.add_argument(
        "--n-best-by-bleu",
        type=int,
        default=1,
        metavar="N",
        help="of the N best translations take the one closest to the corpus's own, by sentence BLEU (default: 1)",
    )
    parser.add_argument(
        "--also-original", action="store_true", help="learn from the corpus's own pairs too, beside the translated ones"
    )
    parser.add_argument(
        "--part", type=int, default=10_000, metavar="N", help="sentences translated between two saves (default: 10000)"
    )
    recipe_arguments(parser, default="student")
    time_argument(parser)
    parser.set_defaults(run=_distill)


def _distill(options: argparse.Namespace) -> int:
    require_run(options.directory)
    from qkv.distill import Distilling, data_of, distill

    options.data = data_of(options.directory, options.data)
    refuse_with_data(options)
    finished = distill(
        options.directory,
        options.data,
        options.output,
        config_of(options),
        distilling=Distilling(options.beam, options.length_penalty, options.n_best_by_bleu, options.also_original),
        sentences_a_part=options.part,
        deadline=deadline_of(options),
        say=tell,
    )
    return ended(finished=finished)
