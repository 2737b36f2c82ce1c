"""Translating tokens/s on this machine's CPU: qkv's search and transformers' generate(), same weights, float32.

    python -m bench.translate_speed                   # base, 37,000 subwords
    python -m bench.translate_speed --recipe C-width256 --vocabulary 8000

Sources of 30 tokens in batches of 32, 30 tokens written for each: the weights are random, so nothing ends by itself,
and both systems write the same number of tokens (their translations are compared too). Batches of both take turns, so
that a noisy machine disturbs both alike; compare only the ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from bench.marian import BEGIN, END, PADDING, marian
from qkv.convert.marian import from_marian
from qkv.engines.plain import PlainEngine
from qkv.models.build import assemble, quicken
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.recipes import recipe
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Limits

LENGTH = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    torch.manual_seed(1)
    theirs = marian(recipe(options.recipe).model, options.vocabulary, positions=256).eval()
    with torch.no_grad():
        # Ends with probability next to nothing: its embedding points away from all that is written.
        theirs.model.shared.weight[END] = 0
    config, weights = from_marian(theirs.config.to_dict(), theirs.state_dict())
    ours = assemble(config, options.vocabulary)
    ours.load_state_dict(weights)
    ours.eval()
    quicken(ours)
    sources = np.random.default_rng(1).integers(4, options.vocabulary, (options.batch, LENGTH)).tolist()
    print(f"{'':8} {'qkv':>10} {'generate()':>12} {'ratio':>7}   output tokens/s, batch {options.batch}")
    for name, width in (("greedy", 1), ("beam 4", 4)):
        compare(
            name, partial(with_qkv, ours, sources, width), partial(with_marian, theirs, sources, width), options.rounds
        )


def compare(name: str, qkv: Callable[[], list[list[int]]], peer: Callable[[], list[list[int]]], rounds: int) -> None:
    """Both take turns; medians of the time of a batch."""
    same = sum(a == b for a, b in zip(qkv(), peer(), strict=True))
    seconds: dict[str, list[float]] = {"qkv": [], "peer": []}
    tokens = 0
    for _ in range(rounds):
        for system, translate in (("qkv", qkv), ("peer", peer)):
            begin = time.perf_counter()
            tokens = sum(map(len, translate()))
            seconds[system].append(time.perf_counter() - begin)
    a, b = (tokens / float(np.median(seconds[system])) for system in ("qkv", "peer"))
    print(f"{name:8} {a:10,.0f} {b:12,.0f} {a / b:7.2f}   {same} of {len(qkv())} translations are the same")


def with_qkv(model: EncoderDecoder, sources: list[list[int]], width: int) -> list[list[int]]:
    engine = PlainEngine(model, PADDING)
    limits = Limits(begin=BEGIN, end=END, longest=[LENGTH] * len(sources))
    found = beam_search(engine, engine.start(sources), limits, width=width, penalty=lambda length: length**0.6)
    return [hypotheses[0].ids for hypotheses in found]


def with_marian(model: Any, sources: list[list[int]], width: int) -> list[list[int]]:
    written = model.generate(
        input_ids=torch.tensor(sources),
        attention_mask=torch.ones(len(sources), LENGTH, dtype=torch.long),
        num_beams=width,
        do_sample=False,
        max_new_tokens=LENGTH,
        length_penalty=0.6,
        bad_words_ids=None,
    )
    return [row[1:] for row in written.tolist()]


if __name__ == "__main__":
    main()
