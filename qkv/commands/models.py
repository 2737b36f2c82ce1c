"""Which model a command uses: the runs that are named, or one of those that are here."""

from __future__ import annotations

import argparse
import re
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.errors import ConfigError
from qkv.progress import tell

_LIKE_TEXT = re.compile(r"""\s|[.,;:!?…。！？»”"']$""")
"""A space, or punctuation at the end."""
_QUOTED = 60

if TYPE_CHECKING:
    from qkv.translate import Precision, Relay, Translator


def model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directories",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="a run directory or an exported model, or several that work together (default: a model that is here)",
    )
    place_arguments(parser)


def place_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, metavar="DIR", help="where to look for models, instead of QKV_MODELS")
    language_arguments(parser)


def language_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source_language", metavar="LANGUAGE", help="the source's, such as en")
    parser.add_argument("--to", dest="target_language", metavar="LANGUAGE", help="the translation's, such as de")
    parser.add_argument("--domain", metavar="NAME", help="a kind of text that the model has learned to tell apart")


def refuse_text(options: argparse.Namespace) -> None:
    """Tells who gives a text in the place of a model where text is given."""
    for path in options.directories:
        if _LIKE_TEXT.search(str(path)) and not _exists(path):
            text = textwrap.shorten(str(path), _QUOTED, placeholder=" …")
            languages = f"--from {options.source_language or 'en'} --to {options.target_language or 'de'}"
            raise ConfigError(
                f"no such run directory: {text}; text is given on standard input: "
                f"echo {shlex.quote(text)} | qkv translate {languages}"
            )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # A text may be longer than any name.
        return False


def load_any(options: argparse.Namespace, precision: Precision = "float32") -> Translator | Relay:
    """What translates in the direction that is asked for: the runs that are named, or else a model that is here."""
    from qkv.translate.directions import SeveralDirectionsError

    try:
        return _load(options, precision)
    except SeveralDirectionsError as error:
        example = f"--from {error.first.source} --to {error.first.target}"
        raise ConfigError(f"{error.what}; say which: {example}") from error


def _load(options: argparse.Namespace, precision: Precision) -> Translator | Relay:
    from qkv.translate import Catalogue, Translator

    if options.directories:
        if options.model is not None:
            raise ConfigError("RUN names a model already; leave out --model")
        translator = Translator.load(*options.directories, device=options.device, precision=precision)
        if not translator.directions:
            return translator.between(options.source_language, options.target_language, domain=options.domain)
        catalogue = Catalogue.of(translator)
    else:
        places = None if options.model is None else [options.model]
        catalogue = Catalogue.open(places, device=options.device, precision=precision)
    route = catalogue.route(options.source_language, options.target_language)
    if route.through is not None:
        way = f"{route.source} to {route.target} through {route.through}"
        tell(f"qkv: note: translating {way}; no model does it directly")
    return catalogue.translator(route.source, route.target, domain=options.domain)


def tell_of_usual_heads(translator: Translator | Relay) -> None:
    """Whoever is shown an alignment, or has tags placed by one, hears if nobody has looked which heads align."""
    if not translator.aligns_as_learned:
        tell(
            "qkv: note: the model aligns by the heads that usually do; `qkv align RUN --learn DATA` finds out which of "
            "a run's align best"
        )
