"""Translating on a GPU: qkv's search that the device does by itself, and transformers' generate(), same weights.

    python -m bench.translate_gpu                              # base with random weights, sentences as in newstest2014
    python -m bench.translate_gpu --run run/ --source test.en [--reference test.de]

Random weights never end a sentence by themselves: each may be a few tokens longer than its source, so both systems
write as many tokens. generate() gets sentences sorted by length, in the batch size that is quickest, and writes as many
tokens for a batch as its longest sentence needs. Both are timed after they did the same once, whatever that first time
took. With --run a trained model translates text, in both precisions: how long it takes, and what bfloat16 costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.marian import BEGIN, END, PADDING, marian, padded
from bench.options import more_than_marks, one_or_more, told
from qkv.convert.marian import from_marian
from qkv.devices import choose_device
from qkv.engines.gpu.search import GpuSearch
from qkv.engines.load import load_run
from qkv.errors import ConfigError
from qkv.evaluate.scores import bleu
from qkv.models.build import assemble
from qkv.recipes import recipe
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from qkv.text.files import read_lines

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
BEAM, ALPHA = 4, 0.6
EXTRA = 4
"""Tokens that a translation has more than its source."""
LONGEST = 160
BATCHES = (128, 384)
ALONE = 10
"""Sentences that are translated one by one."""


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--vocabulary", type=more_than_marks, default=37_000)
    parser.add_argument("--sentences", type=one_or_more, default=3003)
    parser.add_argument("--rounds", type=one_or_more, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--alone", action="store_true", help="qkv without its peer")
    parser.add_argument("--run", type=Path, help="a trained run, instead of random weights")
    parser.add_argument("--source", type=Path, help="with --run: text, a sentence a line")
    parser.add_argument("--reference", type=Path, help="with --run: its translation, for BLEU")
    options = parser.parse_args()
    if (options.run is None) != (options.source is None):
        parser.error("--run and --source go together: a trained run needs text to translate")
    return told("bench.translate_gpu", lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    device = choose_device(options.device)
    if options.run:
        trained(options)
    else:
        random_weights(options, device)


def random_weights(options: argparse.Namespace, device: torch.device) -> None:
    torch.manual_seed(1)
    theirs = marian(recipe(options.recipe).model, options.vocabulary, positions=2 * LONGEST).eval()
    with torch.no_grad():
        # Ends with probability next to nothing: its embedding points away from all that is written.
        theirs.model.shared.weight[END] = 0
    config, weights = from_marian(theirs.config.to_dict(), theirs.state_dict())
    ours = assemble(config, options.vocabulary)
    ours.load_state_dict(weights)
    ours.to(device)
    theirs.to(device)
    sources = news(options.sentences, options.vocabulary)
    limits = Limits(BEGIN, END, [len(source) + EXTRA for source in sources], (PADDING, BEGIN))
    tokens = sum(limits.longest)
    print(f"{len(sources):,} sentences, {tokens:,} tokens to write, on {device_name(device)}", flush=True)
    few = np.linspace(0, len(sources) - 1, ALONE).astype(int).tolist()
    ours_took = {}
    for name, precision in PRECISIONS.items():
        search = GpuSearch(ours, precision=precision)
        together = warm_seconds(partial(found, search, sources, limits, BEAM), options.rounds)
        print(f"{name:9} beam {BEAM}, all:       qkv {together:8.3f} s, {tokens / together:9,.0f} tokens/s", flush=True)
        one = warm_seconds(partial(one_by_one, search, sources, limits, few), options.rounds)
        written = sum(limits.longest[number] for number in few)
        print(f"{name:9} greedy, one by one: qkv {one:8.3f} s, {1000 * one / written:9.3f} ms a token", flush=True)
        ours_took[name] = together, one
    for name, precision in () if options.alone else PRECISIONS.items():
        against(name, theirs.to(precision), sources, limits, few, *ours_took[name])


def against(
    name: str, peer: Any, sources: list[list[int]], limits: Limits, few: list[int], together: float, one: float
) -> None:
    """The peer's times for the same, and how many times ours they are."""
    order = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
    for size in BATCHES:
        theirs = warm_seconds(partial(generate, peer, sources, limits, order, size, BEAM), 1)
        times = f"{theirs / together:.1f} times ours, {size} at once"
        print(f"{name:9} beam {BEAM}, all: generate() {theirs:8.3f} s, {times}", flush=True)
    alone = warm_seconds(partial(generate, peer, sources, limits, few, 1, 1), 1)
    print(f"{name:9} greedy, one by one: generate() {alone:8.3f} s: {alone / one:.1f} times ours", flush=True)


def news(count: int, vocabulary: int) -> list[list[int]]:
    """Random ids in sentences with lengths like those of newstest2014: 28 subwords on average, few of them over 80."""
    random = np.random.default_rng(1)
    lengths = np.clip(np.exp(random.normal(3.2, 0.5, count)).astype(int), 2, LONGEST - EXTRA - 2)
    return [[*random.integers(4, vocabulary, length).tolist(), END] for length in lengths]


def found(search: GpuSearch, sources: Sequence[Sequence[int]], limits: Limits, width: int) -> list[list[Hypothesis]]:
    return search.find(sources, limits, width=width, penalty=paper_penalty(ALPHA))


def one_by_one(search: GpuSearch, sources: list[list[int]], limits: Limits, few: list[int]) -> None:
    for number in few:
        alone = Limits(limits.begin, limits.end, [limits.longest[number]], limits.forbidden)
        found(search, [sources[number]], alone, 1)


def generate(model: Any, sources: list[list[int]], limits: Limits, order: list[int], size: int, width: int) -> None:
    for first in range(0, len(order), size):
        some = order[first : first + size]
        ids = padded([sources[number] for number in some], filler=PADDING).to(model.device)
        longest = max(limits.longest[number] for number in some)
        model.generate(
            input_ids=ids, attention_mask=(ids != PADDING).long(), num_beams=width, do_sample=False,
            max_new_tokens=longest, length_penalty=ALPHA, bad_words_ids=None,
        )  # fmt: skip


def trained(options: argparse.Namespace) -> None:
    texts = list(read_lines(options.source))
    if not texts:
        raise ConfigError(f"--source {options.source} is empty: there is nothing to translate")
    references = list(read_lines(options.reference)) if options.reference else None
    model, tokenizer = load_run(options.run, options.device)[:2]
    sources = [[*tokenizer.encode(text), tokenizer.end] for text in texts]
    limits = Limits(tokenizer.begin, tokenizer.end, [len(source) + 50 for source in sources], tokenizer.marks)
    translations = {}
    for name, precision in PRECISIONS.items():
        search = GpuSearch(model, precision=precision)
        best = [some[0] for some in found(search, sources, limits, BEAM)]
        took = warm_seconds(partial(found, search, sources, limits, BEAM), options.rounds)
        translations[name] = [tokenizer.decode(one.ids) for one in best]
        tokens = sum(len(one.ids) + 1 for one in best)
        quality = "" if references is None else f", BLEU {bleu(translations[name], references):.2f}"
        print(f"{name:9} {took:8.3f} s, {tokens / took:9,.0f} tokens/s, "
              f"mean score {np.mean([one.score for one in best]):.4f}{quality}", flush=True)  # fmt: skip
    same = sum(one == other for one, other in zip(*translations.values(), strict=True))
    print(f"{same:,} of {len(texts):,} translations are the same in both precisions")


def warm_seconds(work: Callable[[], object], rounds: int) -> float:
    """The median of so many rounds, after a first one that is not timed."""
    work()
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken))


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


if __name__ == "__main__":
    sys.exit(main())
