"""`qkv align`: which words came from which."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.commands.lines import helpings, open_output
from qkv.errors import ConfigError, TextError

PAIRS_AT_ONCE = 2000


def add_align(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "align",
        help="say which words of a translation came from which of its source",
        description="Reads pairs, source and translation separated by a tab, and writes for each the links between "
        "their words, counted from 0, source first: 0-0 1-2 2-1. Words are runs of letters and digits; every other "
        "sign is one by itself. With --learn, it finds out instead which heads of the run align best.",
        epilog="examples:\n"
        "  qkv align run/ < pairs.tsv > links\n"
        "  qkv align run/ --learn data/        measures all heads on held-out pairs, and keeps the best with the run\n"
        "  printf 'Good morning.\\tBonjour.\\n' | qkv align run/ --words",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="a run directory or an exported model")
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="a file of pairs, .gz or .xz too (default: standard input)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--words", action="store_true", help="write the words themselves: house=Haus")
    parser.add_argument(
        "--learn", type=Path, metavar="DATA", help="prepared data of the run: choose heads by it, and stop"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")
    parser.set_defaults(run=_align)


def _align(options: argparse.Namespace) -> None:
    if options.learn is not None:
        return _learn(options)
    import sys

    from qkv.progress import Progress
    from qkv.text.files import decode_lines, read_lines
    from qkv.translate import Translator

    translator = Translator.load(options.directory, device=options.device)
    lines = read_lines(options.input) if options.input is not None else decode_lines(sys.stdin.buffer, "standard input")
    first = 1
    with open_output(options.output) as output, Progress("aligning", total=None, unit="pairs") as progress:
        for helping in helpings(lines, PAIRS_AT_ONCE):
            pairs = [_pair(line, number) for number, line in enumerate(helping, start=first)]
            sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
            for one in translator.score(sources, targets, align=True, progress=progress.advance):
                output.write(f"{_shown(one.alignment, options)}\n" if one.alignment is not None else "\n")
            first += len(helping)
    return None


def _pair(line: str, number: int) -> tuple[str, str]:
    source, tab, target = line.partition("\t")
    if not tab:
        raise TextError(f"line {number} is no pair: a source, a tab and its translation are expected")
    return source, target


def _shown(alignment: Any, options: argparse.Namespace) -> str:
    return alignment.in_words() if options.words else str(alignment)


def _learn(options: argparse.Namespace) -> None:
    from qkv.engines.exported import is_exported
    from qkv.engines.heads import learn_looks
    from qkv.engines.load import load_run
    from qkv.prepare import Prepared
    from qkv.progress import tell

    if is_exported(options.directory):
        raise ConfigError(f"{options.directory} is exported; learn with the run, and export it again")
    loaded = load_run(options.directory, options.device)
    prepared = Prepared.open(options.learn)
    if prepared.tokenizer().fingerprint != loaded.tokenizer.fingerprint:
        raise TextError(f"{options.learn} was prepared with another vocabulary than that of {options.directory}")
    looks = learn_looks(loaded, prepared.corpus("train"), prepared.corpus("valid"))
    looks.save(options.directory)
    heads = ", ".join(f"head {head + 1} of layer {layer + 1}" for layer, head in looks.heads)
    when = "when it is read" if looks.when_read else "when it is written"
    tell(f"a word is found best by {heads}, {when}: quality {looks.quality:.3f}")
