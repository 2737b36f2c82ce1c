"""`qkv watch`: how a run learns, as a page that grows while it does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands
from qkv.commands.lines import open_output
from qkv.errors import ConfigError

_PORT = 5001


def add_watch(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "watch",
        help="show how a run learns: its curves, samples, and attention over its checkpoints",
        description="Shows loss, learning rate, speed, BLEU and sample translations of a run while it goes on, and "
        "what the decoder looks at in one sentence, checkpoint by checkpoint. It answers browsers of this machine "
        "alone, and writes nothing into the run.",
        epilog="examples:\n"
        "  qkv watch run/\n"
        '  qkv watch run/ --sentence "The cat sat on the mat." --port 8080\n'
        "  qkv watch run/ --html run.html                          one page that needs nothing else",
    )
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--sentence", help="whose attention is shown (default: one of the run's samples)")
    parser.add_argument(
        "--from", dest="source_language", metavar="LANGUAGE", help="source language, of a run of several"
    )
    parser.add_argument("--to", dest="target_language", metavar="LANGUAGE", help="target language, of a run of several")
    parser.add_argument(
        "--port", type=int, default=_PORT, help=f"port on 127.0.0.1; 0 takes a free one (default: {_PORT})"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page as it is now, and stop")
    parser.set_defaults(run=_watch)


def _watch(options: argparse.Namespace) -> None:
    from qkv.watching.run import Watched

    languages = options.source_language, options.target_language
    if any(languages) and not all(languages):
        raise ConfigError("give both --from and --to, or neither")
    if not 0 <= options.port < 1 << 16:
        raise ConfigError(f"there is no port {options.port}; give one from 0 to 65535")
    if options.sentence is not None and not options.sentence.strip():
        raise ConfigError("the sentence is empty; give some words to translate")
    watched = Watched(options.run_directory, sentence=options.sentence, languages=languages if all(languages) else None)
    if options.html is None:
        from qkv.watching.server import serve

        serve(watched, options.port)
        return
    from qkv import pages

    watched.look()
    told = watched.told()
    with open_output(options.html) as output:
        output.write(pages.page(pages.FOLDER / "watch", told["name"], told))
