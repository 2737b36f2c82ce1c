"""`qkv attention`: what every head looks at while a sentence is translated, as one page or as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.commands.arguments import Commands, search_arguments
from qkv.commands.lines import open_output
from qkv.commands.models import load_any, place_arguments
from qkv.errors import ConfigError
from qkv.progress import tell

if TYPE_CHECKING:
    from qkv.translate import Relay, Translation, Translator

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
"""One word more or less, and `it` is something else: what languages with genders have to notice."""


def add_attention(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "attention",
        help="look inside: every head's attention to a sentence, as a page that needs nothing else",
        description="Translates a sentence and writes one page that shows what every head of every layer looked at, "
        "how the search went and how likely each token was. It needs no network and no server. Without a sentence, it "
        "shows what `it` looks at in two sentences of which one word differs.",
        epilog="examples:\n"
        "  qkv attention --to de --html attention.html\n"
        '  qkv attention "The cat sat on the mat." run/ --html attention.html\n'
        '  qkv attention "Time flies." model/ --compare "Fruit flies." --from en --to de --html attention.html\n'
        '  qkv attention "The cat sat on the mat." run/ --json attention.json    what docs/inspecting.md tells of',
    )
    parser.add_argument("sentence", nargs="?", metavar="SENTENCE", help="what is translated (default: an example)")
    parser.add_argument("directory", nargs="?", type=Path, metavar="RUN", help="a run directory or an exported model")
    # To say what is wrong with them, and not that they are not known.
    parser.add_argument("others", nargs="*", type=Path, help=argparse.SUPPRESS)
    place_arguments(parser)
    parser.add_argument("--compare", metavar="SENTENCE", help="another sentence, to be shown beside it")
    parser.add_argument("--html", type=Path, metavar="FILE", help="where the page goes; - is standard output")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the numbers go; - is standard output")
    search_arguments(parser)
    parser.set_defaults(run=_attention)


def _attention(options: argparse.Namespace) -> None:
    if options.html is None and options.json is None:
        raise ConfigError("attention needs --html FILE, or --json FILE, to write to")
    if options.html == options.json == Path("-"):
        raise ConfigError("--html and --json cannot both go to standard output; name a file for one of them")
    options.directories = _named(options)
    if len(options.directories) > 1:
        raise ConfigError("an ensemble cannot be looked into; name one model")
    sentences = _sentences(options)
    if not all(sentence.strip() for sentence in sentences):
        raise ConfigError("a sentence is empty; give some words to translate")
    # numpy is slow to import, and --help must not wait for it.
    from qkv.inspecting.inspection import MOST_VECTORS_OF_FILE
    from qkv.inspecting.page import page

    translator = load_any(options)
    found = translator.translate(sentences, beam=options.beam, length_penalty=options.length_penalty)
    shown = [one.attention.as_json(most_vectors=MOST_VECTORS_OF_FILE) for one in found]
    if options.html is not None:
        _write(options.html, page(shown[0], *shown[1:], elsewhere=_elsewhere(translator, sentences, options)))
    if options.json is not None:
        _write(options.json, _json(shown) + "\n")
    _tell(sentences, found)


def _named(options: argparse.Namespace) -> list[Path]:
    """The models that are named, the first of them perhaps where a sentence would be."""
    named = [options.directory, *options.others] if options.directory else []
    if options.sentence and _is_directory(options.sentence):
        named, options.sentence = [Path(options.sentence), *named], None
    return named


def _is_directory(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except OSError:
        # A sentence may be longer than any name.
        return False


def _elsewhere(
    translator: Translator | Relay, sentences: list[str], options: argparse.Namespace
) -> list[list[dict[str, Any]]]:
    """Two sentences that are compared, in every other language that the same model writes."""
    from qkv.translate import Translator

    if len(sentences) < 2 or not isinstance(translator, Translator):
        return []
    source, target = translator.source_language, translator.target_language
    others = [one.target for one in translator.directions if one.source == source and one.target != target]
    found = []
    for other in others:
        model = translator.between(source, other, domain=options.domain)
        both = model.translate(sentences, beam=options.beam, length_penalty=options.length_penalty)
        # Nobody works out an equation there.
        found.append([one.attention.as_json(most_vectors=0) for one in both])
    return found


def _sentences(options: argparse.Namespace) -> list[str]:
    """The sentence and the one beside it; the example has one."""
    if options.sentence is not None:
        return [options.sentence] if options.compare is None else [options.sentence, options.compare]
    if options.source_language not in (None, "en"):
        raise ConfigError(f"the example is English; give a sentence in {options.source_language}")
    return [TIRED, WIDE if options.compare is None else options.compare]


def _json(shown: list[dict[str, Any]]) -> str:
    told = shown[0] if len(shown) == 1 else dict(zip(("inspection", "compare"), shown, strict=True))
    return json.dumps(told, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    with open_output(None if path == Path("-") else path) as output:
        output.write(text)


def _tell(sentences: list[str], found: list[Translation]) -> None:
    for sentence, one in zip(sentences, found, strict=True):
        tell(f"{sentence} → {one.text}")
