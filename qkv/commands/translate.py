"""`qkv translate`: text, a line at a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.commands.arguments import Commands, search_arguments
from qkv.commands.lines import helpings, open_output
from qkv.errors import ConfigError, TextError

if TYPE_CHECKING:
    from qkv.translate import Translation

LINES_AT_ONCE = 2000


def add_translate(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate text, a line at a time",
        description="Translates standard input to standard output: one line in, one line out, in order.",
        epilog="examples:\n"
        "  qkv translate run/ < in.en > out.fr\n"
        "  echo 'Good morning.' | qkv translate run/\n"
        "  qkv translate run/ --beam 8 --n-best 4 < in.en      number, score and text of each, separated by tabs\n"
        "  qkv translate run/ --sample --top-p 0.9 --seed 7 < in.en",
    )
    parser.add_argument("directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="a text file, .gz or .xz too (default: standard input)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    search_arguments(parser)
    parser.add_argument("--n-best", type=int, default=1, metavar="N", help="the N best of each line, with their scores")
    parser.add_argument("--scores", action="store_true", help="put each translation's score before it")
    parser.add_argument("--sample", action="store_true", help="draw translations instead of searching for the best")
    parser.add_argument(
        "--temperature", type=float, default=1.0, metavar="T", help="with --sample: below 1 is more careful"
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="with --sample: only the K best tokens")
    parser.add_argument("--top-p", type=float, metavar="P", help="with --sample: only the best tokens up to P together")
    parser.add_argument("--seed", type=int, default=0, help="with --sample: another seed, other translations")
    parser.set_defaults(run=_translate)


def _translate(options: argparse.Namespace) -> None:
    from qkv.progress import Progress
    from qkv.search.sample import Sampling
    from qkv.text.files import decode_lines, read_lines
    from qkv.translate import Translator

    if options.n_best < 1:
        raise ConfigError(f"--n-best is {options.n_best}; it must be at least 1")
    if not options.sample and (options.temperature != 1.0 or options.top_k is not None or options.top_p is not None):
        raise ConfigError("--temperature, --top-k and --top-p draw translations; add --sample")
    sampling = Sampling(options.temperature, options.top_k, options.top_p) if options.sample else None
    if options.input is None and sys.stdin is None:
        raise ConfigError("standard input is closed; give --input, a text file")
    lines = read_lines(options.input) if options.input else decode_lines(sys.stdin.buffer, "standard input")
    if options.input and options.output and options.output.exists() and options.output.samefile(options.input):
        raise ConfigError(f"--input and --output are both {options.input}, which would be lost")
    translator = Translator.load(options.directory, device=options.device)
    translate = partial(
        translator.translate,
        beam=options.beam,
        length_penalty=options.length_penalty,
        alternatives=options.n_best - 1,
        sampling=sampling,
    )
    # What is asked for wrongly is told before the output is touched.
    translate([], seed=options.seed)
    # Whoever types lines wants to see each translated; a file is quicker in large helpings.
    interactive = options.input is None and sys.stdin.isatty()
    first = 1
    with open_output(options.output) as output, Progress("translating", total=None, unit="lines") as progress:
        try:
            for texts in helpings(lines, 1 if interactive else LINES_AT_ONCE):
                translations = translate(texts, seed=options.seed + first - 1, progress=progress.advance)
                for number, translation in enumerate(translations, start=first):
                    output.writelines(_translation_lines(number, translation, options))
                output.flush()
                first += len(texts)
        except TextError as error:
            before = "nothing is written" if options.output else f"the {first - 1:,} lines before it are translated"
            raise TextError(f"{error}; {before}") from error


def _translation_lines(number: int, translation: Translation, options: argparse.Namespace) -> Iterator[str]:
    for one in (translation, *translation.alternatives):
        # A byte that breaks lines would break the promise of one line for one line.
        text = one.text.replace("\n", " ").replace("\r", " ")
        score = f"{one.score:.4f}\t" if options.scores or options.n_best > 1 else ""
        yield (f"{number}\t" if options.n_best > 1 else "") + score + text + "\n"
