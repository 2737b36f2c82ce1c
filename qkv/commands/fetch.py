"""`qkv fetch`: public corpora, downloaded and prepared as the paper has them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands, changed_settings, changes_argument
from qkv.progress import tell
from qkv.settings import override_all
from qkv.storage import readable_size


def add_fetch(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "fetch",
        help="download public corpora and prepare them as the paper did",
        description="Downloads public corpora from their homes, checks them, and prepares them with the paper's "
        "settings. Without a name, lists the corpora with their sizes and terms. What is there is left as it is: the "
        "same command goes on where it was stopped.",
        epilog="examples:\n"
        "  qkv fetch\n"
        "  qkv fetch wmt14-en-de\n"
        "  qkv fetch multi30k-en-de iwslt14-de-en --output corpora/\n"
        "  qkv fetch wmt14-en-de --from https://mirror.example.org/corpora    a copy of somebody's downloads/\n"
        "  qkv fetch wmt14-en-de --text-only                                  without preparing it",
    )
    parser.add_argument("names", nargs="*", metavar="CORPUS", help="which corpora; none lists them")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("corpora"),
        metavar="DIR",
        help="where corpora are kept, each in a directory of its own, with one for all downloads (default: corpora)",
    )
    mirror_argument(parser)
    parser.add_argument("--text-only", action="store_true", help="stop when the parallel text is there")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that prepare (default: one a core)")
    changes_argument(parser)
    parser.set_defaults(run=_fetch)


def mirror_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--from",
        dest="mirror",
        metavar="URL",
        help="download from a mirror, which has the files of downloads/ (default: the variable QKV_MIRROR, else their "
        "homes)",
    )


def _fetch(options: argparse.Namespace) -> None:
    from qkv.fetch import CORPORA, corpus, fetch

    if not options.names:
        for name, one in CORPORA.items():
            print(f"{name:16} {readable_size(one.bytes):>9}  {one.title}\n{'':27}{one.terms}")
        return
    # What was typed wrong is told before anything is downloaded.
    configs = {name: override_all(corpus(name).config(), changed_settings(options)) for name in options.names}
    for name, config in configs.items():
        fetched = fetch(name, options.output, mirror=options.mirror, say=tell)
        if not options.text_only:
            tell(fetched.prepare(config, workers=options.workers).summary())
        print(fetched.directory / "text" if options.text_only else fetched.data)
