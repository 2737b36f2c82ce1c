"""`qkv prepare`: parallel text as data to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.commands.settings import config_of, corpus_arguments
from qkv.progress import tell


def add_prepare(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "prepare",
        help="clean parallel text, learn its subwords and write ids",
        description="Cleans parallel text, learns one vocabulary for both languages and writes memory-mapped ids.",
        epilog="examples:\n"
        "  qkv prepare train.en train.fr --output data/\n"
        "  qkv prepare europarl.tsv.xz tatoeba.tsv.gz --valid dev.tsv --test test.tsv --output data/\n"
        "  qkv prepare europarl.en-de.tsv.xz --directions en-de,de-en --output data/\n"
        "  qkv prepare mix.toml --output data/                   what docs/languages.md tells of\n"
        "  qkv prepare train.en train.fr --set text.vocabulary=8000 --set text.algorithm=unigram --output data/",
    )
    corpus_arguments(parser, required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the prepared data goes")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.set_defaults(run=_prepare)


def _prepare(options: argparse.Namespace) -> None:
    from qkv.prepare import prepare

    prepared = prepare(
        options.files,
        options.output,
        config_of(options),
        valid=options.valid,
        test=options.test,
        tokenizer=options.tokenizer,
        workers=options.workers,
    )
    tell(prepared.summary())
