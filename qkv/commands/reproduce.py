"""`qkv reproduce`: the paper's results, from fetching their corpora to a table beside the paper's."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import (
    Commands,
    changed_settings,
    changes_argument,
    deadline_of,
    ended,
    given_of,
    require_together,
    seconds,
    speaks,
    time_argument,
)
from qkv.commands.fetch import mirror_argument
from qkv.errors import ConfigError, TrainingError
from qkv.progress import tell

_OF_TABLE_3 = ("rows", "width", "layers", "sentences")


def add_reproduce(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="train, translate and score as the paper did, and print its numbers beside",
        description="Fetches the corpus of an experiment, prepares it, trains, averages, translates and scores, and "
        "prints a table beside the paper's. Without a name, lists the experiments. What is done is not done again: "
        "the same command goes on where it was stopped.",
        epilog="examples:\n"
        "  qkv reproduce\n"
        "  qkv reproduce base-en-de\n"
        "  torchrun --nproc-per-node 8 -m qkv reproduce big-en-de\n"
        "  qkv reproduce base-en-de --data data/ --test test.tsv --budget 25m\n"
        "  qkv reproduce table3 --budget 5m --output results.md\n"
        "  qkv reproduce table3 --rows base,A,C-layers2 --steps 2000 --width 128 --layers 3",
    )
    parser.add_argument("name", nargs="?", metavar="EXPERIMENT", help="which result, or table3; none lists them")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="where its runs are kept (default: reproduced/EXPERIMENT)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the table here too, such as table.md, and its values beside it as JSON, table.json",
    )
    learned = parser.add_argument_group("what is learned from")
    learned.add_argument(
        "--data", type=Path, metavar="DIR", help="data that `qkv prepare` wrote, instead of the corpus"
    )
    learned.add_argument(
        "--test",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file of pairs, or source and reference, instead of its own; not for table3",
    )
    learned.add_argument(
        "--corpora", type=Path, default=Path("corpora"), metavar="DIR", help="where corpora are kept (default: corpora)"
    )
    mirror_argument(learned)
    long = parser.add_argument_group("how long")
    long.add_argument(
        "--budget",
        type=seconds,
        metavar="TIME",
        help="train each run for about so long, such as 90s, 5m or 2h: speed is measured, schedules shortened",
    )
    long.add_argument("--steps", type=int, metavar="N", help="train each run for so many steps, likewise")
    time_argument(long)
    rows = parser.add_argument_group("for table3")
    rows.add_argument(
        "--rows", metavar="ROWS", help="such as base,A,C-layers2: names, or letters of groups (default: all)"
    )
    rows.add_argument("--width", type=int, metavar="N", help="of base, with all rows in proportion (default: 512)")
    rows.add_argument("--layers", type=int, metavar="N", help="of base, with all rows in proportion (default: 6)")
    rows.add_argument("--sentences", type=int, metavar="N", help="of the development set to translate (default: all)")
    changes_argument(parser)
    parser.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from qkv.reproduce import EXPERIMENTS, TABLE_3, Report, experiment

    if options.name is None:
        for name, one in EXPERIMENTS.items():
            print(f"{name:16} {'' if one.printed is None else one.printed:>5}  {one.title}")
        print(f"{'table3':16} {'':>5}  {len(TABLE_3)} models side by side at an equal budget")
        return 0
    table3 = options.name == "table3"
    if not table3:
        experiment(options.name)
        if given := given_of(_OF_TABLE_3, options):
            raise ConfigError(f"{', '.join(given)}: of use only for table3")
    elif options.test is not None:
        raise ConfigError("--test: of no use for table3, which is of the development set; leave it out")
    require_together(options, of_use_only_with={}, not_with={"budget": ("steps",), "data": ("mirror",)})
    changes = changed_settings(options)
    if "training.steps" in changes and (options.budget or options.steps):
        raise ConfigError("training.steps is what --budget or --steps settles; leave one out")
    from qkv.reproduce.data import Data
    from qkv.reproduce.plan import Length
    from qkv.reproduce.report import require_place

    # That there is no place for a table is told before the hours that it takes to make it.
    if options.output and speaks():
        require_place(options.output)
    work = options.work or Path("reproduced") / options.name
    common: dict[str, Any] = {
        "length": Length(options.budget, options.steps),
        "changes": changes,
        "deadline": deadline_of(options),
        "say": tell,
    }
    data = Data(options.data, options.corpora, options.mirror)
    if table3:
        from qkv.reproduce.table3 import reproduce_table3

        wanted = options.rows.split(",") if options.rows else ()
        scale = {name: getattr(options, name) for name in ("width", "layers", "sentences")}
        report: Report | None = reproduce_table3(work, data, wanted=wanted, **scale, **common)
    else:
        from qkv.reproduce.table2 import reproduce

        report = reproduce(options.name, work, data, test=options.test or (), **common)
    if not speaks():
        return ended(finished=report is not None)
    if report is None:
        tell("stopped because time is nearly up; the same command goes on")
        return ended(finished=False)
    for path in filter(None, (work / "results.md", options.output)):
        report.write(path)
    print(report.text, end="")
    if report.failed:
        raise TrainingError(f"{', '.join(report.failed)} could not be trained; the table tells why")
    return ended(finished=not report.left)
