"""`qkv evaluate`: how good translations are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from qkv.commands.arguments import Commands, given_of, precision_argument, require_together, search_arguments
from qkv.errors import ConfigError
from qkv.progress import tell

_OF_TRANSLATING = ("beam", "length_penalty", "domain")
"""How a system translates that is no file of translations."""


def add_evaluate(commands: Commands[Any]) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="score translations: BLEU, chrF, and the paper's own flavour",
        description="Scores systems against reference translations. A system is a run directory, which translates the "
        "source, or a file of translations. Given two, it adds paired bootstrap significance.",
        epilog="examples:\n"
        "  qkv evaluate run/ --test newstest2014.tsv --language de\n"
        "  qkv evaluate run/ --source test.en --reference test.fr\n"
        "  qkv evaluate model/ --tests newstest2014.en-de.tsv newstest2014.en-fr.tsv\n"
        "  qkv evaluate baseline.txt better.txt --reference test.fr --json",
    )
    parser.add_argument("systems", nargs="*", type=Path, metavar="SYSTEM", help="run directory or file of translations")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="what the translations should be like")
    parser.add_argument("--source", type=Path, metavar="FILE", help="what run directories are to translate")
    parser.add_argument("--test", type=Path, metavar="TSV", help="source and reference in one file of pairs")
    parser.add_argument(
        "--tests",
        nargs="+",
        type=Path,
        metavar="TSV",
        help="several test sets, named like newstest2014.en-de.tsv: a table of all, in every direction of the model",
    )
    parser.add_argument("--directions", metavar="LIST", help="with --tests: only these, such as en-de,de-en")
    parser.add_argument(
        "--direct",
        action="store_true",
        help="with --tests: directions that the model has not learned are asked of it too, not through English",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="target language, for the paper's flavour (default: the run's, else that of a name like test.fr, else "
        "English)",
    )
    parser.add_argument("--domain", metavar="NAME", help="translate as a kind of text that the model can tell apart")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    search_arguments(parser)
    precision_argument(parser)
    parser.set_defaults(run=_evaluate)


def _evaluate(options: argparse.Namespace) -> None:
    require_together(
        options,
        of_use_only_with={("tests",): ("directions", "direct")},
        not_with={"tests": ("test", "source", "reference", "language")},
    )
    if options.tests is not None:
        _evaluate_tests(options)
        return
    if not options.systems:
        raise ConfigError("evaluate needs a SYSTEM to score, or --tests for a model that is here")
    given = given_of(_OF_TRANSLATING, options)
    if given and all(path.exists() and not path.is_dir() for path in options.systems):
        raise ConfigError(f"{', '.join(given)}: of use only where a run translates; name one, or leave it out")
    from qkv.evaluate import evaluate
    from qkv.evaluate.scores import moses_languages, moses_tokenizer, require_packages, require_text
    from qkv.evaluate.systems import read_systems, read_test

    sources, references = read_test(options.test, options.source, options.reference)
    # What is wrong is told before an hour of translating, not after it.
    require_packages()
    require_text(references)
    if options.language is not None:
        moses_tokenizer(options.language)
    systems, language = read_systems(
        options.systems,
        sources,
        beam=options.beam,
        length_penalty=options.length_penalty,
        device=options.device,
        precision=options.precision,
        domain=options.domain,
    )
    chosen = options.language or language or _named_language(options)
    if chosen is None:
        tell("qkv: note: the paper's flavour is taken as English; --language fr says otherwise")
        chosen = "en"
    if chosen not in moses_languages():
        tell(
            f"qkv: note: the paper's flavour is left out: Moses has no rules for the run's language, {chosen!r}; "
            f"--language takes one of {', '.join(moses_languages())}"
        )
        chosen = None
    report = evaluate(systems, references, language=chosen)
    _show(report.values if options.json else report.text)


def _named_language(options: argparse.Namespace) -> str | None:
    """The target language that the name of the references tells: test.en-fr.tsv, or test.fr."""
    from qkv.evaluate.scores import moses_languages
    from qkv.text.languages import named_pair

    if options.test is not None:
        pair = named_pair([options.test])
        return pair.target if pair else None
    ending = options.reference.name.removesuffix(".gz").removesuffix(".xz").rpartition(".")[2]
    return ending if ending in moses_languages() else None


def _evaluate_tests(options: argparse.Namespace) -> None:
    from qkv.evaluate.several import evaluate_several, table
    from qkv.text.languages import parse_directions
    from qkv.translate import Catalogue, Translator

    catalogue = Catalogue.open(options.systems or None, device=options.device, precision=options.precision)
    if options.direct:
        if len(options.systems) != 1:
            raise ConfigError("--direct asks one model for what it has not learned; name it")
        translator = Translator.load(options.systems[0], device=options.device, precision=options.precision)
        catalogue = Catalogue.of(translator.in_every_direction())
    only = parse_directions(options.directions)
    how = {"beam": options.beam, "length_penalty": options.length_penalty}
    rows = evaluate_several(catalogue, options.tests, only, domain=options.domain, **how)
    _show([row.values for row in rows] if options.json else table(rows))


def _show(what: Any) -> None:
    print(what if isinstance(what, str) else json.dumps(what, indent=2, ensure_ascii=False))
