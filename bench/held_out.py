"""A test set, and a translator that is warm: what benchmarks of translations begin with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from qkv import Translation, Translator
from qkv.evaluate.scores import bleu
from qkv.evaluate.systems import read_test
from qkv.text.cleaning import normalise


def sentence_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sentences", type=int, help="only so many of them")
    parser.add_argument("--from", dest="source", metavar="CODE", help="the languages, of a model of several directions")
    parser.add_argument("--to", dest="target", metavar="CODE")


def read_held_out(options: argparse.Namespace) -> tuple[Translator, list[str], list[str]]:
    """The translator of a run, and the sources and references of a test set."""
    sources, references = read_test(options.test, None, None)
    assert sources is not None, "a test set has sources"
    sources, references = sources[: options.sentences], [normalise(one) for one in references[: options.sentences]]
    translator = Translator.load(options.run).between(options.source, options.target)
    translator.translate(sources[:8])
    return translator, sources, references


def score(translations: Sequence[Translation], references: Sequence[str]) -> float:
    return bleu([one.text for one in translations], references)
