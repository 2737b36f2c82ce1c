"""Tokens/s of a teacher and of its student on this machine's CPU, as they are exported in int8, taking turns.

    python -m bench.student_speed                                   # recipes base and student, random weights
    python -m bench.student_speed --runs base/ student/ --test test.en-de.tsv   # runs, or what they were exported to

Recipes have 37,000 subwords and write 30 tokens for sources of 30, base with and without a shortlist (made up, as large
as a learned one: random weights teach none), its student with one. What counts is the CPU time of all threads of this
process, of which others on the machine take nothing away. Compare only the ratios.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from bench.marian import END
from bench.options import more_than_marks, one_or_more, told
from bench.translators import LENGTH, made_up_shortlist, ranks, searching
from qkv.engines.onnx import OnnxEngine
from qkv.engines.plain import usual_looks
from qkv.errors import ConfigError
from qkv.evaluate.systems import read_test
from qkv.export.directory import write_graphs
from qkv.models.build import build
from qkv.recipes import recipe
from qkv.translate import Translator

Translates = Callable[[int], int]
"""Translates with a beam of this width, and tells how many tokens were written."""


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs=2, default=["base", "student"], metavar="RECIPE")
    parser.add_argument("--vocabulary", type=more_than_marks, default=37_000)
    parser.add_argument("--runs", nargs=2, type=Path, metavar="RUN")
    parser.add_argument("--test", type=Path, metavar="TSV")
    parser.add_argument("--batches", nargs="+", type=one_or_more, default=[1, 32], help="sentences at once (recipes)")
    parser.add_argument("--rounds", type=one_or_more, default=5)
    options = parser.parse_args()
    if (options.runs is None) != (options.test is None):
        parser.error("--runs and --test go together: runs need a test set to translate")
    return told("bench.student_speed", lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    if options.runs:
        sources, _ = read_test(options.test, None, None)
        if not sources:
            raise ConfigError(f"--test {options.test} is empty: there is nothing to translate")
        teacher, student = (of_run(run, sources) for run in options.runs)
        compare("test set", {"teacher": teacher, "student": student}, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        places = [exported(name, options.vocabulary, Path(folder) / name) for name in options.recipes]
        engines = {
            "teacher": OnnxEngine(places[0], shortlist=False),
            "teacher, shortlist": OnnxEngine(places[0], shortlist=True),
            "student, shortlist": OnnxEngine(places[1], shortlist=True),
        }
        for batch in options.batches:
            sources = ranks(np.random.default_rng(1), options.vocabulary, (batch, LENGTH)).tolist()
            systems = {name: partial(write, engine, sources) for name, engine in engines.items()}
            compare(f"batch {batch}", systems, options.rounds)


def compare(name: str, systems: Mapping[str, Translates], rounds: int) -> None:
    """All at beam 4, and the last one with narrower beams too; medians of their tokens in a second of work."""
    asked = [*((system, 4) for system in systems), *(([*systems][-1], beam) for beam in (3, 2, 1))]
    speeds: dict[tuple[str, int], list[float]] = {one: [] for one in asked}
    for number in range(rounds + 1):
        for system, beam in asked:
            begun = time.process_time()
            tokens = systems[system](beam)
            # In the first round all get ready.
            if number:
                speeds[system, beam].append(tokens / (time.process_time() - begun))
    first = float(np.median(speeds[asked[0]]))
    for (system, beam), some in speeds.items():
        print(f"{name:10} {system:20} beam {beam} {np.median(some):10,.0f} tokens/s {np.median(some) / first:7.2f}")


def exported(name: str, vocabulary: int, folder: Path) -> Path:
    """Graphs of random weights, with a shortlist that is made up."""
    model = build(recipe(name).model, vocabulary, seed=1).eval()
    folder.mkdir()
    write_graphs(folder, model, "int8", usual_looks(model).heads, made_up_shortlist(vocabulary))
    return folder


def write(engine: OnnxEngine, sources: list[list[int]], beam: int) -> int:
    return sum(map(len, searching(engine, forbidden=(END,))(sources, beam)))


def of_run(run: Path, sources: list[str]) -> Translates:
    translator = Translator.load(run, device="cpu")
    return lambda beam: sum(len(one.tokens) for one in translator.translate(sources, beam=beam))


if __name__ == "__main__":
    sys.exit(main())
