"""Translating tokens/s on this machine's CPU: qkv's engines and their peers side by side, from the same weights.

    python -m bench.translate_speed                   # base, 37,000 subwords
    python -m bench.translate_speed --recipe C-width256 --vocabulary 8000 --batches 1 32 --rounds 5

Sources of 30 tokens, 30 tokens written for each: the weights are random, so nothing ends by itself, and all systems
write the same number of tokens. Their batches take turns, so that a noisy machine disturbs all alike; compare only the
ratios, of time and of the work of all threads together. A shortlist cannot be learned from random weights: it is made
up, as large as a learned one. qkv gives each core a part of a batch; CTranslate2 is asked both for that ("apart": as
many translators as cores, each with its part of the batch) and to share every product.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench.options import more_than_marks, one_or_more, told
from bench.translators import LENGTH, SYSTEMS, Ids, Process, Timed, Weights, ranks
from qkv.errors import ConfigError


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--vocabulary", type=more_than_marks, default=37_000)
    parser.add_argument("--batches", type=one_or_more, nargs="+", default=[1, 32])
    parser.add_argument("--beams", type=one_or_more, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=one_or_more, default=5)
    parser.add_argument("--systems", nargs="+", default=[*SYSTEMS], choices=[*SYSTEMS])
    options = parser.parse_args()
    return told("bench.translate_speed", lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    sources = ranks(np.random.default_rng(1), options.vocabulary, (max(options.batches), LENGTH)).tolist()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as started:
        Weights(options.recipe, options.vocabulary).write(Path(folder))
        systems = {name: Process(name, options.recipe, options.vocabulary, Path(folder)) for name in options.systems}
        for system in systems.values():
            # Whatever happens, none of them still reads from the folder when it goes.
            started.callback(system.close)
        for batch in options.batches:
            for beam in options.beams:
                print(f"\nbatch {batch}, beam {beam}")
                report(compare(systems, sources[:batch], beam, options.rounds), batch * LENGTH)


def compare(systems: Mapping[str, Process], sources: Ids, beam: int, rounds: int) -> dict[str, list[Timed]]:
    """How every round went; the first, in which all get ready, does not count."""
    timed: dict[str, list[Timed]] = {name: [] for name in systems}
    for _ in range(rounds + 1):
        for name, system in systems.items():
            timed[name].append(system.translate(sources, beam))
            if [*map(len, timed[name][-1].ids)] != [LENGTH] * len(sources):
                raise ConfigError(
                    f"{name} ended before {LENGTH} tokens: of so few subwords the end is among the likely ones; give "
                    "--vocabulary more, or --beams less"
                )
    return {name: some[1:] for name, some in timed.items()}


def report(timed: Mapping[str, list[Timed]], tokens: int) -> None:
    """Medians: tokens a second, tokens a second of work, and how many times as many each is as of the peers."""
    rates = {name: tokens / float(np.median([one.seconds for one in some])) for name, some in timed.items()}
    works = {name: tokens / float(np.median([one.work for one in some])) for name, some in timed.items()}
    for name in timed:
        ratios = "".join(_ratio(name, peer, rates, works) for peer in ("CTranslate2", "generate()"))
        print(f"  {name:32} {rates[name]:7,.0f} tokens/s {works[name]:7,.0f} a second of work{ratios}", flush=True)


def _ratio(name: str, peer: str, rates: Mapping[str, float], works: Mapping[str, float]) -> str:
    """Beside the quickest of a peer's."""
    best = [max((some[one] for one in some if one.startswith(peer)), default=None) for some in (rates, works)]
    if best[0] is None or best[1] is None:
        return ""
    return f" | {rates[name] / best[0]:5.2f} and {works[name] / best[1]:5.2f} × {peer}"


if __name__ == "__main__":
    sys.exit(main())
