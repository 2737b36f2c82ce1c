"""`qkv export`: a run as a model that translates on any CPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.directories import require_run
from qkv.errors import ConfigError
from qkv.progress import tell


def add_export(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "export",
        help="make a model that translates on any CPU without torch",
        description="Writes the model of a run for translating on CPUs: smaller, faster, and without torch. "
        "`qkv translate` and `qkv evaluate` take it in place of the run.",
        epilog="examples:\n"
        "  qkv export run/ --output model/\n"
        "  qkv export run/ --output model/ --precision float32 --no-shortlist     computes as the run does\n"
        "  qkv export run/ --output model/ --plain-marks                          it mixed ’ with ' and “ with \"\n"
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
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data it learned from (default: where that was)")
    parser.add_argument(
        "--plain-marks",
        action="store_true",
        help="make the quotation marks and apostrophes that it reads and writes one kind, where its text had two",
    )
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    require_run(options.directory)
    # Only who has a run needs torch.
    from qkv.export import export

    export(
        options.directory,
        options.output,
        precision=options.precision,
        shortlist=options.shortlist,
        data=options.data,
        plain_marks=options.plain_marks,
        say=tell,
    )
    print(options.output)


def add_card(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "card",
        help="write the card of an exported model: data, terms, recipe, scores",
        description="Writes README.md into the directory of an exported model, from its run, the data it learned from, "
        "reports of its scores, and what is told here.",
        epilog="example:\n"
        "  qkv evaluate model/ --tests news.en-de.tsv --json > scores.json\n"
        "  qkv card model/ --run run/ --data data/ --scores scores.json --title 'English and German' \\\n"
        "    --recipe fast --commit 1a2b3c4 --hardware 'one H200' --notes notes.md",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the exported model")
    parser.add_argument(
        "--run", dest="run_directory", type=Path, required=True, metavar="RUN", help="what was exported"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data it learned from")
    parser.add_argument("--scores", nargs="*", type=Path, default=[], metavar="FILE", help="what `qkv evaluate` told")
    parser.add_argument("--title", required=True, help="what the model is called")
    parser.add_argument("--recipe", required=True, metavar="RECIPE", help="what it was trained by")
    parser.add_argument("--commit", required=True, help="of qkv, when it was trained")
    parser.add_argument("--hardware", required=True, help="what it was trained on")
    parser.add_argument("--notes", type=Path, required=True, metavar="FILE", help="what it is bad at, as Markdown")
    parser.set_defaults(run=_card)


def _card(options: argparse.Namespace) -> None:
    from qkv.engines.exported import is_exported
    from qkv.export.card import CARD, Facts, write_card
    from qkv.text.files import read_lines

    if not is_exported(options.directory):
        raise ConfigError(f"{options.directory} is no exported model; `qkv export` makes one")
    notes = "\n".join(read_lines(options.notes))
    facts = Facts(options.title, options.recipe, options.commit, options.hardware, notes)
    write_card(options.directory, options.run_directory, options.data, options.scores, facts)
    print(options.directory / CARD)
