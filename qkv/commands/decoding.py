"""How translations are looked for: what is asked for on the command line, and what a translator is given for it."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.errors import TextError

if TYPE_CHECKING:
    from qkv.translate import Controls, Sampling, Terms

_DEFAULT_WEIGHT = 0.5
_DEFAULT_SAMPLES = 32
_NOTHING = "none"


def asked_arguments(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_argument_group("what translations are like")
    asked.add_argument("--coverage-penalty", type=float, metavar="BETA", help="what it costs to leave parts out")
    asked.add_argument("--no-repeat", type=int, metavar="N", help="no sequence of N tokens comes twice")
    asked.add_argument("--min-length", type=int, metavar="N", help="at least N tokens before the end")
    asked.add_argument("--prefix", metavar="TEXT", help="what every translation begins with")
    asked.add_argument("--prefixes", type=Path, metavar="FILE", help="what each translation begins with, line by line")
    asked.add_argument("--glossary", type=Path, metavar="TSV", help="a file of terms that must appear, or must not")
    asked.add_argument(
        "--keep",
        metavar="KINDS",
        help="what comes out unchanged, once each: placeholders, tags, entities, urls, e-mails, paths, code, numbers; "
        "amounts are numbers that may be written in another way, and none is nothing (default: "
        "placeholders,urls,e-mails,amounts; where a line is taken for one sentence, none)",
    )


def drawn_arguments(parser: argparse.ArgumentParser) -> None:
    drawn = parser.add_argument_group("drawing")
    drawn.add_argument("--sample", action="store_true", help="draw translations instead of searching for the best")
    drawn.add_argument(
        "--mbr", choices=["chrf", "bleu"], help="draw many and take the one that is most like the others"
    )
    drawn.add_argument("--samples", type=int, metavar="N", help=f"with --mbr: how many (default: {_DEFAULT_SAMPLES})")
    drawn.add_argument("--temperature", type=float, metavar="T", help="below 1 is more careful")
    drawn.add_argument("--top-k", type=int, metavar="K", help="only the K best tokens")
    drawn.add_argument("--top-p", type=float, metavar="P", help="only the best tokens up to P together")
    drawn.add_argument(
        "--epsilon", type=float, metavar="P", help="only tokens of at least this probability (with --mbr: 0.02)"
    )
    drawn.add_argument("--seed", type=int, help="another seed, other translations (default: 0)")


def reranking_arguments(parser: argparse.ArgumentParser) -> None:
    again = parser.add_argument_group("reranking")
    again.add_argument("--rerank", type=Path, metavar="RUN", help="a second model, asked about all that the beam found")
    again.add_argument("--weight", type=float, metavar="W", help=f"its weight, 0 to 1 (default: {_DEFAULT_WEIGHT})")
    again.add_argument("--backward", action="store_true", help="it translates the other way: it scores the source")


def require_sound(options: argparse.Namespace) -> None:
    """What was typed wrong is told before anything is loaded."""
    _controls(options)
    _sampling(options)


def how_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `Translator.translate` is told of how translations are looked for."""
    return {
        "alternatives": (options.n_best or 1) - 1,
        "beam": options.beam,
        "length_penalty": options.length_penalty,
        "seed": options.seed or 0,
        "controls": _controls(options),
        **_choice(options),
    }


def prefixes_of(options: argparse.Namespace) -> Callable[[int, int], list[str] | None]:
    """What so many lines after so many others begin with; asked for none, that there are no more."""
    if options.prefixes is None:
        return lambda _, count: [options.prefix] * count if options.prefix else None
    from qkv.text.files import read_lines

    lines = read_lines(options.prefixes)

    def prefixes(done: int, count: int) -> list[str]:
        some = [*itertools.islice(lines, count)]
        if len(some) < count:
            raise TextError(
                f"{options.prefixes} has {done + len(some):,} lines, and the input has more; give a line for each, "
                "empty where a translation may begin as it likes"
            )
        if not count and next(lines, None) is not None:
            raise TextError(
                f"{options.prefixes} has more lines than the input, which has {done:,}; give a line for each"
            )
        return some

    return prefixes


def terms_of_each(options: argparse.Namespace, *, usual: bool) -> Callable[[str], Terms] | None:
    """What the translation of a sentence has to keep to, the usual where nobody says; None for nothing."""
    from qkv.text.glossary import Glossary
    from qkv.translate import COMMONLY_KEPT, terms_of

    glossary = Glossary.load(options.glossary) if options.glossary is not None else None
    kept: Sequence[str] = COMMONLY_KEPT if usual else ()
    if options.keep is not None:
        kept = () if options.keep == _NOTHING else options.keep.split(",")
    if glossary is None and not kept:
        return None
    terms = partial(terms_of, glossary=glossary, keep=kept)
    # What is asked for wrongly is told before anything is loaded.
    terms("")
    return terms


def _controls(options: argparse.Namespace) -> Controls:
    from qkv.translate import Controls

    return Controls(
        coverage_penalty=options.coverage_penalty or 0.0,
        no_repeats_of=options.no_repeat or 0,
        least_tokens=options.min_length or 0,
    )


def _choice(options: argparse.Namespace) -> dict[str, Any]:
    """How a translation is chosen, where it is not the likeliest."""
    from qkv.translate import Mbr, Rerank, Sampling, Translator

    if options.rerank is not None:
        weight = _DEFAULT_WEIGHT if options.weight is None else options.weight
        other = Translator.load(options.rerank, device=options.device)
        return {"rerank": Rerank(other, weight, backward=options.backward)}
    if options.mbr is not None:
        samples = _DEFAULT_SAMPLES if options.samples is None else options.samples
        return {"mbr": Mbr(options.mbr, samples), "sampling": _sampling(options)}
    return {"sampling": _sampling(options) or Sampling()} if options.sample else {}


def _sampling(options: argparse.Namespace) -> Sampling | None:
    """What may be drawn, where that is said."""
    from qkv.translate import Sampling

    given = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "epsilon")}
    given = {name: value for name, value in given.items() if value is not None}
    return Sampling(**given) if given else None
