"""Training tokens/s on this machine's CPU: qkv and transformers' MarianMTModel, same architecture, same sentences.

    python -m bench.train_speed                      # base, 37,000 subwords
    python -m bench.train_speed --recipe C-width256 --vocabulary 8000 --tokens 2048

Steps of both take turns, so that a noisy machine disturbs both alike; compare only the ratio. Each system gets the
same sentences in batches of about the same number of tokens: ours packed in rows, Marian's sorted by length and
padded. Dropout 0.1, label smoothing 0.1, Adam; tokens are real source and target tokens, padding not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from bench.marian import BEGIN, END, PADDING, marian, padded
from bench.sentences import write_corpus
from qkv.config import Config
from qkv.data.batches import Batches, Marks
from qkv.data.corpus import Corpus
from qkv.layers.loss import IGNORED, smoothed_cross_entropy
from qkv.models.build import build
from qkv.recipes import recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base", help="the architecture (default: base)")
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--tokens", type=int, default=4096, help="target positions a step")
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    config = recipe(options.recipe)

    with tempfile.TemporaryDirectory() as directory:
        corpus = write_corpus(
            Path(directory), pairs=6000, vocabulary=options.vocabulary, longest=config.data.row_width - 1
        )
        systems = {
            "qkv": qkv_steps(config, corpus, options.vocabulary, options.tokens),
            "transformers": marian_steps(config, corpus, options.vocabulary, options.tokens),
        }
        speeds: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(options.steps + 2):
            for name, steps in systems.items():
                begin = time.perf_counter()
                tokens = next(steps)
                speed = tokens / (time.perf_counter() - begin)
                if number >= 2:
                    speeds[name].append(speed)
    median = {name: float(np.median(values)) for name, values in speeds.items()}
    for name, value in median.items():
        print(f"{name:13} {value:9,.0f} source + target tokens/s (median of {options.steps} steps)")
    print(f"ratio         {median['qkv'] / median['transformers']:9.2f}")


def qkv_steps(config: Config, corpus: Corpus, vocabulary: int, tokens: int) -> Iterator[int]:
    """Trains a step at a time; each gives the number of real tokens it saw."""
    width = config.data.row_width
    batches = Batches(corpus, width=width, rows_a_step=tokens // width, marks=Marks(PADDING, BEGIN, END), seed=1)
    model = build(config.model, vocabulary, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    step = 0
    while True:
        batch = batches.of_step(step)
        x_RWD, _ = model.read(batch.target, model.start(batch.source))
        loss = smoothed_cross_entropy(
            x_RWD.flatten(0, 1), model.inputs.weight_VD, batch.label_RW.flatten(), smoothing=0.1
        )
        (loss.total / loss.tokens).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        assert batch.source.segments_RW is not None
        yield int((batch.source.segments_RW != 0).sum() + loss.tokens)


def marian_steps(config: Config, corpus: Corpus, vocabulary: int, tokens: int) -> Iterator[int]:
    """The same for Marian, on batches of sentences of like length, in random order."""
    model = marian(config.model, vocabulary, positions=2 * config.data.row_width)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batches = list(_sorted_batches(corpus, tokens))
    random = np.random.default_rng(1)
    while True:
        pairs = [corpus.pair(int(pair)) for pair in batches[random.integers(len(batches))]]
        source = padded([[*source, END] for source, _ in pairs], filler=PADDING)
        target = padded([[BEGIN, *target] for _, target in pairs], filler=PADDING)
        label = padded([[*target, END] for _, target in pairs], filler=IGNORED)
        mask = (source != PADDING).long()
        logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), label.flatten(), label_smoothing=0.1)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        yield int(mask.sum() + (label != IGNORED).sum())


def _sorted_batches(corpus: Corpus, tokens: int) -> Iterator[list[int]]:
    lengths = corpus.target_lengths() + 1
    batch: list[int] = []
    for pair in np.lexsort((corpus.source_lengths(), lengths)).tolist():
        if batch and (len(batch) + 1) * lengths[pair] > tokens:
            yield batch
            batch = []
        batch.append(pair)
    yield batch


if __name__ == "__main__":
    main()
