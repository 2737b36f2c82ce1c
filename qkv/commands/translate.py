"""`qkv translate`: its options, and which of them go together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands, line_arguments, precision_argument, require_together, search_arguments
from qkv.commands.decoding import (
    asked_arguments,
    drawn_arguments,
    how_of,
    prefixes_of,
    require_sound,
    reranking_arguments,
    terms_of_each,
)
from qkv.commands.files import extensions, models_and_files, require_files, translate_files
from qkv.commands.lines import input_lines
from qkv.commands.models import load_any, model_arguments, refuse_text, tell_of_usual_heads
from qkv.commands.text import OF_SENTENCES, asks_of_sentences, translate_text
from qkv.errors import ConfigError

_OF_USE_ONLY_WITH = {
    ("sample", "mbr"): ("temperature", "top_k", "top_p", "epsilon", "seed"),
    ("mbr",): ("samples",),
    ("rerank",): ("weight", "backward"),
    ("document",): ("tags",),
    ("file",): ("again",),
}
"""Options that say how, by those that say what."""

_OF_SEARCH = ("beam", "length_penalty", "coverage_penalty")
"""What is drawn is not searched for."""
_NOT_WITH = {
    "stream": ("n_best", "scores", "json", "sample", "mbr", "rerank", "beam", "length_penalty", "glossary", "keep"),
    "file": (
        *("n_best", "scores", "json", "stream", "prefix", "prefixes", "document", "tags", "input", "sample", "mbr"),
        *("rerank", "whole_lines"),
    ),
    "document": OF_SENTENCES,
    "mbr": ("sample", "rerank", *_OF_SEARCH),
    "sample": ("rerank", *_OF_SEARCH),
    "prefix": ("prefixes",),
}


def add_translate(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "translate",
        help="translate lines, files or whole folders",
        description="Translates standard input to standard output: one line in, one line out, in order, however many "
        "sentences it has. Several runs with one vocabulary translate together, as an ensemble.",
        epilog="examples:\n"
        "  qkv translate --from en --to de < in.en > out.de    with the model that is here\n"
        "  qkv translate run/ < in.en > out.fr\n"
        "  echo 'Good morning.' | qkv translate run/\n"
        "  qkv translate run-a/ run-b/ < in.en                 an ensemble: the mean of their probabilities\n"
        "  qkv translate run/ --beam 8 --n-best 4 < in.en      number, score and text of each, separated by tabs\n"
        "  qkv translate run/ --json < in.en                   tokens and their log-probabilities too\n"
        "  qkv translate run/ --prefix 'Chère Madame,' < in.en\n"
        "  qkv translate run/ --coverage-penalty 0.2 --no-repeat 3 --min-length 4 < in.en\n"
        "  qkv translate run/ --glossary terms.tsv --keep placeholders,urls,numbers < in.en\n"
        "  qkv translate run/ --sample --top-p 0.9 --seed 7 < in.en\n"
        "  qkv translate run/ --mbr chrf --samples 64 < in.en  of 64 drawn, the one most like the others\n"
        "  qkv translate run/ --rerank backwards/ --weight 0.3 < in.en\n"
        "  qkv translate run/ --document < report.txt          lines are paragraphs, however long\n"
        "  qkv translate run/ --document --tags < report.txt   tags, <b>…</b>, go where their words went\n"
        "  qkv translate run/ --whole-lines < test.en          lines as the model alone would translate them\n"
        "  qkv translate run/ --file report.docx --to fr       writes report.fr.docx; HTML and more work too\n"
        "  qkv translate run/ site/ --to fr                    every page of a folder, to site.fr/\n"
        "  qkv translate run/ --stream                         each translation is shown as it grows",
    )
    model_arguments(parser)
    line_arguments(parser)
    search_arguments(parser)
    precision_argument(parser)
    asked_arguments(parser)
    _shown_arguments(parser)
    _text_arguments(parser)
    drawn_arguments(parser)
    reranking_arguments(parser)
    parser.set_defaults(run=_translate)


def _shown_arguments(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--n-best", type=int, metavar="N", help="the N best of each line, with their scores")
    shown.add_argument("--scores", action="store_true", help="put each translation's score before it")
    shown.add_argument("--json", action="store_true", help="a JSON object a line: all scores, of each token too")
    shown.add_argument("--stream", action="store_true", help="show each translation as it grows; a greedy search")


def _text_arguments(parser: argparse.ArgumentParser) -> None:
    long = parser.add_argument_group("text of any length")
    long.add_argument("--document", action="store_true", help="the input is one text: white space stays as it is")
    long.add_argument(
        "--whole-lines",
        action="store_true",
        help="each line is one sentence, and nothing of it is kept or checked unless --keep says so",
    )
    long.add_argument("--tags", action="store_true", help="carry inline tags, <b>…</b>, to where their words went")
    files = parser.add_argument_group("files")
    files.add_argument(
        "--file",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="files, or folders of them, that are translated as they are: " + ", ".join(extensions()),
    )
    files.add_argument(
        "--again", action="store_true", help="translate what is translated already: files, and entries of .po and .xlf"
    )


def _translate(options: argparse.Namespace) -> None:
    refuse_text(options)
    if options.target_language and not options.file:
        options.directories, options.file = models_and_files(options.directories)
    require_together(options, of_use_only_with=_OF_USE_ONLY_WITH, not_with=_NOT_WITH)
    if options.n_best is not None and options.n_best < 1:
        raise ConfigError(f"--n-best is {options.n_best}; it must be at least 1")
    lines = input_lines(options, with_ends=options.document) if not options.file else iter(())
    prefixes = prefixes_of(options)
    terms = terms_of_each(options, usual=not asks_of_sentences(options))
    require_sound(options)
    if options.file:
        require_files(options.file)
    translator = load_any(options, options.precision)
    if not translator.holds_to_terms and options.glossary is None and options.keep is None:
        terms = None
    if options.file:
        translate_files(translator, options, how_of(options), terms)
        return
    if options.tags:
        tell_of_usual_heads(translator)
    translate_text(translator, lines, prefixes, terms, options)
