"""Tokens/s of a teacher and of its student on one core of this machine's CPU, float32, taking turns.

    python -m bench.student_speed                                   # recipes base and student, random weights
    python -m bench.student_speed --runs run/ student/ --test demo/test.en-fr.tsv

Recipes have an output of 3,000 subwords, the size of a shortlist, and write 27 tokens for sources of 27. What counts is
the CPU time of this process, which has one thread: others on the machine disturb it little. Compare only the ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from qkv.engines.plain import PlainEngine
from qkv.evaluate.systems import read_test
from qkv.models.build import build, quicken
from qkv.recipes import recipe
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Limits, paper_penalty
from qkv.translate import Translator

LENGTH = 27
PADDING, BEGIN, END = range(3)

Translates = Callable[[int], int]
"""Translates with a beam of this width, and tells how many tokens were written."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs=2, default=["base", "student"], metavar="RECIPE")
    parser.add_argument("--shortlist", type=int, default=3000)
    parser.add_argument("--runs", nargs=2, type=Path, metavar="RUN")
    parser.add_argument("--test", type=Path, metavar="TSV")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32], help="sentences at once (recipes)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.runs:
        sources, _ = read_test(options.test, None, None)
        compare("test set", [of_run(run, sources or []) for run in options.runs], options.rounds)
        return
    engines = [engine_of(name, options.shortlist) for name in options.recipes]
    for batch in options.batches:
        sources = np.random.default_rng(1).integers(4, options.shortlist, (batch, LENGTH)).tolist()
        compare(f"batch {batch}", [partial(write, engine, sources) for engine in engines], options.rounds)


def compare(name: str, systems: list[Translates], rounds: int) -> None:
    """Teacher at beam 4, student at beam 4 and greedy; medians of their tokens in a second."""
    asked = {"teacher, beam 4": (0, 4), "student, beam 4": (1, 4), "student, greedy": (1, 1)}
    speeds: dict[str, list[float]] = {what: [] for what in asked}
    for _ in range(rounds):
        for what, (system, beam) in asked.items():
            begun = time.process_time()
            tokens = systems[system](beam)
            speeds[what].append(tokens / (time.process_time() - begun))
    teacher = float(np.median(speeds["teacher, beam 4"]))
    for what, some in speeds.items():
        print(f"{name:10} {what:16} {np.median(some):10,.0f} tokens/s {np.median(some) / teacher:7.2f}")


def engine_of(name: str, vocabulary: int) -> PlainEngine:
    model = build(recipe(name).model, vocabulary, seed=1).eval()
    quicken(model)
    return PlainEngine(model, PADDING)


def write(engine: PlainEngine, sources: list[list[int]], beam: int) -> int:
    limits = Limits(begin=BEGIN, end=END, longest=[LENGTH] * len(sources), forbidden=(END,))
    found = beam_search(engine, engine.start(sources), limits, width=beam, penalty=paper_penalty(0.6))
    return sum(len(hypotheses[0].ids) for hypotheses in found)


def of_run(run: Path, sources: list[str]) -> Translates:
    translator = Translator.load(run, device="cpu")
    return lambda beam: sum(len(one.tokens) for one in translator.translate(sources, beam=beam))


if __name__ == "__main__":
    main()
