"""`qkv score`: how likely a model holds given translations to be."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from qkv.commands.arguments import Commands, line_arguments, scoring_arguments
from qkv.commands.lines import input_lines, values
from qkv.commands.models import load_any, model_arguments
from qkv.commands.pairs import write_pairs

if TYPE_CHECKING:
    from qkv.translate import Translation


def add_score(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "score",
        help="score given translations: how likely a model holds them to be",
        description="Reads pairs, a source and its translation with a tab between them, and writes a line for each: "
        "its score as a search would have given it, and its log-probability. A line that is no pair is told of, and "
        "an empty line stands in its place.",
        epilog="examples:\n"
        "  qkv score --from en --to de < pairs.tsv             by the model that is here\n"
        "  qkv score run/ < pairs.tsv > scores.tsv\n"
        "  paste in.en out.fr | qkv score run/ --tokens        each token with its log-probability, too\n"
        "  qkv score run-a/ run-b/ --json < pairs.tsv          by an ensemble, as JSON",
    )
    model_arguments(parser)
    line_arguments(parser)
    scoring_arguments(parser)
    parser.add_argument("--tokens", action="store_true", help="a third column: tokens and their log-probabilities")
    parser.add_argument("--json", action="store_true", help="a JSON object a line: all of that, and the text")
    parser.set_defaults(run=_score)


def _score(options: argparse.Namespace) -> None:
    lines = input_lines(options)
    translator = load_any(options)
    score = partial(translator.score, length_penalty=options.length_penalty)
    # What is asked for wrongly is told before the output is touched.
    score([], [])
    write_pairs(lines, options, score, partial(_row, options=options), partial(_gap, options=options), doing="scor")


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
