"""Translating tokens/s on this machine's CPU: qkv's engines and their peers side by side, from the same weights.

    python -m bench.translate_speed                   # base, 37,000 subwords
    python -m bench.translate_speed --recipe C-width256 --vocabulary 8000 --batches 1 32 --rounds 5

Sources of 30 tokens, 30 tokens written for each: the weights are random, so nothing ends by itself, and all systems
write the same number of tokens. Their batches take turns, so that a noisy machine disturbs all alike; compare only the
ratios. A shortlist cannot be learned from random weights: it is made up, as large as a learned one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.translators import LENGTH, SYSTEMS, Ids, Process, Weights, ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", default=[*SYSTEMS], choices=[*SYSTEMS])
    options = parser.parse_args()

    sources = ranks(np.random.default_rng(1), options.vocabulary, (max(options.batches), LENGTH)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        Weights(options.recipe, options.vocabulary).write(Path(folder))
        systems = {name: Process(name, options.recipe, options.vocabulary, Path(folder)) for name in options.systems}
        for batch in options.batches:
            for beam in options.beams:
                print(f"\nbatch {batch}, beam {beam}")
                report(compare(systems, sources[:batch], beam, options.rounds), batch * LENGTH)
        for system in systems.values():
            system.close()


def compare(systems: Mapping[str, Process], sources: Ids, beam: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of every round; the first, in which all get ready, does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(rounds + 1):
        for name, system in systems.items():
            timed = system.translate(sources, beam)
            assert [*map(len, timed.ids)] == [LENGTH] * len(sources), name
            if number:
                seconds[name].append(timed.seconds)
    return seconds


def report(seconds: Mapping[str, list[float]], tokens: int) -> None:
    """Medians, and how many times as fast as the quickest CTranslate2 and as generate() each is."""
    rate = {name: tokens / float(np.median(some)) for name, some in seconds.items()}
    peers = {
        "CTranslate2": max((rate[name] for name in rate if name.startswith("CTranslate2")), default=None),
        "generate()": max((rate[name] for name in rate if name.startswith("generate()")), default=None),
    }
    for name, tokens_per_second in rate.items():
        ratios = (f"{tokens_per_second / peer:6.2f} × {which}" for which, peer in peers.items() if peer is not None)
        print(f"  {name:26} {tokens_per_second:8,.0f} tokens/s   {'   '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
