"""`qkv score`: how likely a model holds given translations to be."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.commands.arguments import Commands, line_arguments, scoring_arguments
from qkv.commands.lines import helpings, input_lines, input_name, open_output, values
from qkv.errors import TextError
from qkv.progress import Progress, tell
from qkv.text.cleaning import Pair, normalise

if TYPE_CHECKING:
    from qkv.translate import Translation

LINES_AT_ONCE = 2000


def add_score(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "score",
        help="score given translations: how likely a model holds them to be",
        description="Reads pairs, a source and its translation with a tab between them, and writes a line for each: "
        "its score as a search would have given it, and its log-probability. A line that is no pair is told of, and "
        "an empty line stands in its place.",
        epilog="examples:\n"
        "  qkv score run/ < pairs.tsv > scores.tsv\n"
        "  paste in.en out.fr | qkv score run/ --tokens        each token with its log-probability, too\n"
        "  qkv score run-a/ run-b/ --json < pairs.tsv          by an ensemble, as JSON",
    )
    parser.add_argument(
        "directories", nargs="+", type=Path, metavar="RUN", help="a run directory, or several that score together"
    )
    line_arguments(parser)
    scoring_arguments(parser)
    parser.add_argument("--tokens", action="store_true", help="a third column: tokens and their log-probabilities")
    parser.add_argument("--json", action="store_true", help="a JSON object a line: all of that, and the text")
    parser.set_defaults(run=_score)


def _score(options: argparse.Namespace) -> None:
    from qkv.translate import Translator

    lines = input_lines(options)
    translator = Translator.load(*options.directories, device=options.device)
    score = partial(translator.score, length_penalty=options.length_penalty)
    # What is asked for wrongly is told before the output is touched.
    score([], [])
    done = bad = 0
    with open_output(options.output) as output, Progress("scoring", total=None, unit="lines") as progress:
        try:
            for lines_at_once in helpings(lines, LINES_AT_ONCE):
                pairs = [_pair(line) for line in lines_at_once]
                sound = [pair for pair in pairs if isinstance(pair, Pair)]
                scored = iter(
                    score([pair.source for pair in sound], [pair.target for pair in sound], progress=progress.advance)
                )
                for number, pair in enumerate(pairs, start=done + 1):
                    if isinstance(pair, Pair):
                        output.write(_row(number, next(scored), options))
                    else:
                        bad += 1
                        tell(f"qkv: warning: {input_name(options)}, line {number}: {pair}; it is not scored")
                        output.write(_gap(number, pair, options))
                output.flush()
                done += len(pairs)
        except TextError as error:
            before = "nothing is written" if options.output else f"the {done:,} lines before it are scored"
            raise TextError(f"{error}; {before}") from error
    if bad:
        raise TextError(f"{bad:,} of {done:,} lines are not scored; all others are")


def _pair(line: str) -> Pair | str:
    """A source and its translation, or what is wrong with the line."""
    source, tab, rest = line.partition("\t")
    pair = Pair(source, rest.partition("\t")[0])
    if not tab:
        return "no tab between a source and its translation"
    if normalise(pair.target) and not normalise(source):
        return "a translation without a source"
    return pair


def _row(number: int, one: Translation, options: argparse.Namespace) -> str:
    if options.json:
        return json.dumps({"line": number, **values(one)}, ensure_ascii=False) + "\n"
    columns = [f"{one.score:.4f}", f"{one.log_probability:.4f}"]
    if options.tokens:
        pairs = zip(one.tokens, one.token_scores, strict=True)
        columns.append(" ".join(f"{token} {score:.4f}" for token, score in pairs))
    return "\t".join(columns) + "\n"


def _gap(number: int, wrong: str, options: argparse.Namespace) -> str:
    """What stands in the place of a line that was not scored, so that the others keep theirs."""
    return json.dumps({"line": number, "error": wrong}) + "\n" if options.json else "\n"
