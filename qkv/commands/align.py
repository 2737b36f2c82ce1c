"""`qkv align`: which words came from which."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.commands.arguments import Commands, device_argument, line_arguments
from qkv.commands.lines import input_lines
from qkv.commands.models import load_any, model_arguments, tell_of_usual_heads
from qkv.commands.pairs import write_pairs
from qkv.errors import ConfigError, TextError
from qkv.progress import tell

if TYPE_CHECKING:
    from qkv.translate import Translation


def add_align(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "align",
        help="say which words of a translation came from which of its source",
        description="Reads pairs, source and translation separated by a tab, and writes for each the links between "
        "their words, counted from 0, source first: 0-0 1-2 2-1. Words are runs of letters and digits; every other "
        "sign is one by itself. With --learn, it finds out instead which heads of the run align best.",
        epilog="examples:\n"
        "  qkv align --from en --to fr < pairs.tsv    by the model that is here\n"
        "  qkv align run/ < pairs.tsv > links\n"
        "  qkv align run/ --learn data/        measures all heads on held-out pairs, and keeps the best with the run\n"
        "  printf 'Good morning.\\tBonjour.\\n' | qkv align run/ --words",
    )
    model_arguments(parser)
    line_arguments(parser)
    parser.add_argument("--words", action="store_true", help="write the words themselves: house=Haus")
    parser.add_argument(
        "--learn", type=Path, metavar="DATA", help="prepared data of the run: choose heads by it, and stop"
    )
    device_argument(parser)
    parser.set_defaults(run=_align)


def _align(options: argparse.Namespace) -> None:
    if options.learn is not None:
        _learn(options)
        return
    lines = input_lines(options)
    translator = load_any(options)
    tell_of_usual_heads(translator)
    read = partial(translator.score, align=True)
    write_pairs(lines, options, read, partial(_row, options=options), lambda *_: "\n", doing="align")


def _row(_: int, one: Translation, options: argparse.Namespace) -> str:
    """The links; of an empty pair, none."""
    if one.alignment is None:
        return "\n"
    return f"{one.alignment.in_words() if options.words else one.alignment}\n"


def _learn(options: argparse.Namespace) -> None:
    from qkv.engines.exported import is_exported
    from qkv.engines.heads import learn_looks
    from qkv.engines.load import load_run
    from qkv.prepare import Prepared

    if len(options.directories) != 1:
        raise ConfigError("--learn is for one run; name it: qkv align RUN --learn DATA")
    (directory,) = options.directories
    if is_exported(directory):
        raise ConfigError(f"{directory} is exported; learn with the run, and export it again")
    loaded = load_run(directory, options.device)
    prepared = Prepared.open(options.learn)
    if prepared.tokenizer().fingerprint != loaded.tokenizer.fingerprint:
        raise TextError(f"{options.learn} was prepared with another vocabulary than that of {directory}")
    looks = learn_looks(loaded, prepared.corpus("train"), prepared.corpus("valid"))
    looks.save(directory)
    heads = ", ".join(f"head {head + 1} of layer {layer + 1}" for layer, head in looks.heads)
    when = "when it is read" if looks.when_read else "when it is written"
    tell(f"a word is found best by {heads}, {when}: quality {looks.quality:.3f}")
