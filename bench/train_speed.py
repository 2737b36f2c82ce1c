"""Training tokens/s: qkv beside transformers' MarianMTModel and torch.nn.Transformer, on the same sentences.

    python -m bench.train_speed                                        # on a CPU: base, made-up sentences
    python -m bench.train_speed --recipe C-width256 --vocabulary 8000 --tokens 2048
    python -m bench.train_speed --data data/ --recipe big              # on a GPU: sentences that qkv prepare wrote
    python -m bench.train_speed --data data/ --profile                 # where the time of a step goes

Tokens are real source and target tokens, padding not counted; every step of the optimizer is included, dropout and
label smoothing are 0.1. Peers get batches sorted by length and padded; on a GPU they run in bfloat16 by autocast.
On a GPU, qkv is `qkv train` itself, as a user runs it, over all steps but the first 50. On a CPU, steps of all systems
take turns, so that a noisy machine disturbs all alike: compare only the ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.marian import BEGIN, END, PADDING
from bench.peers import PEERS, peer_steps, sorted_batches
from bench.profile import profile_step
from bench.sentences import write_corpus
from qkv.config import Config
from qkv.data.batches import Batches, Marks
from qkv.data.corpus import Corpus
from qkv.prepare import Prepared
from qkv.recipes import RECIPES, recipe
from qkv.training.learner import Learner
from qkv.training.processes import Processes

_SKIPPED = 50
"""The first steps of a run on a GPU, in which kernels are compiled and the step is captured."""
_GPU_TOKENS = {"big": 32_768}
"""Target positions a step on a GPU; 65,536 for the others."""
_PEER_TOKENS = 25_000
"""What the peers' memory and speed like; the paper's batch."""
_PEER_STEPS = 40
"""Measured after a pass over the same batches: what a new shape costs (0.3 s for a plan of cuDNN's attention) is not
theirs to pay here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base", help="the architecture (default: base)")
    parser.add_argument("--data", type=Path, help="a directory that qkv prepare wrote (needed on a GPU)")
    parser.add_argument("--vocabulary", type=int, default=37_000, help="of made-up sentences")
    parser.add_argument("--tokens", type=int, help="target positions a step")
    parser.add_argument("--steps", type=int, help="measured steps of each system (default: 6, or 250 on a GPU)")
    parser.add_argument("--profile", action="store_true", help="show where the time of a step goes (GPU)")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    options = parser.parse_args()
    if options.recipe not in RECIPES:
        parser.error(f"no recipe {options.recipe!r}; there are {', '.join(RECIPES)}")
    config = recipe(options.recipe).with_changes(training={"label_smoothing": 0.1}, model={"dropout": 0.1})
    if options.tokens is not None and options.tokens < config.data.row_width:
        parser.error(f"--tokens {options.tokens} is less than a row of {config.data.row_width}")
    if torch.cuda.is_available():
        if options.data is None:
            parser.error("on a GPU, --data DIRECTORY: what qkv prepare wrote")
        on_gpu(config, options)
    elif options.profile or options.data is not None:
        parser.error("--profile and --data are for a GPU, and there is none; without them, sentences are made up")
    else:
        on_cpu(config, options)


def on_cpu(config: Config, options: argparse.Namespace) -> None:
    """All systems take turns, a step each."""
    tokens, steps = options.tokens or 4096, options.steps or 6
    with tempfile.TemporaryDirectory() as directory:
        corpus = write_corpus(
            Path(directory), pairs=6000, vocabulary=options.vocabulary, longest=config.data.row_width - 1
        )
        systems = {"qkv": qkv_steps(config, corpus, options.vocabulary, tokens)}
        for name in () if options.alone else PEERS:
            batches = sorted_batches(corpus, tokens, count=steps + 2)
            systems[name] = peer_steps(name, config, options.vocabulary, batches, torch.device("cpu"))
        speeds: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(steps + 2):
            for name, system in systems.items():
                begin = time.perf_counter()
                seen = next(system)
                if number >= 2:
                    speeds[name].append(seen / (time.perf_counter() - begin))
    show({name: float(np.median(values)) for name, values in speeds.items()}, f"median of {steps} steps")


def on_gpu(config: Config, options: argparse.Namespace) -> None:
    """One system after the other; qkv's own figures come from its log."""
    tokens, steps = options.tokens or _GPU_TOKENS.get(options.recipe, 65_536), options.steps or 250
    prepared = Prepared.open(options.data)
    corpus, vocabulary = prepared.corpus("train"), prepared.tokenizer().size
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.recipe}, {vocabulary:,} subwords")
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        train(options, Path(directory) / "first", tokens, steps=1)
        print(f"from the command to the end of a run of one step: {time.perf_counter() - begin:.1f} s")
        log = train(options, Path(directory) / "run", tokens, steps=steps + _SKIPPED)
    measured = [line for line in log if line["kind"] == "train" and line["step"] > _SKIPPED]
    speeds = {"qkv": float(np.mean([line["tokens_per_second"] for line in measured]))}
    idle = float(np.mean([line["idle"] for line in measured]))
    memory = max(line["memory"] for line in measured) / 1e9
    print(
        f"qkv: {speeds['qkv']:,.0f} tokens/s with {tokens:,} target positions a step; the GPU waits {idle:.2%} of the "
        f"time, and {memory:.1f} GB of its memory are used at most",
        flush=True,
    )
    for name in () if options.alone else PEERS:
        batches = sorted_batches(corpus, _PEER_TOKENS, count=_PEER_STEPS)
        peer = peer_steps(name, config, vocabulary, batches, torch.device("cuda"))
        speeds[name] = timed(peer, _PEER_STEPS, _PEER_STEPS)
        torch.cuda.empty_cache()
    show(speeds, f"mean of {steps} steps; peers of {_PEER_STEPS}, after as many of the same shapes")
    if options.profile:
        batches_of_ours = Batches(
            corpus, width=config.data.row_width, rows_a_step=tokens // config.data.row_width, marks=_MARKS, seed=1
        )
        profile_step(config, batches_of_ours.of_step(0), vocabulary)


def train(options: argparse.Namespace, run: Path, tokens: int, *, steps: int) -> list[dict[str, Any]]:
    """`qkv train`, and what it logged."""
    settings = {
        "steps": steps, "tokens_per_batch": tokens, "report_every": 50, "label_smoothing": 0.1,
        "validate_every": 10**6, "validation_sentences": 0, "save_every": 10**6,
    }  # fmt: skip
    command = [sys.executable, "-m", "qkv", "train", "--data", str(options.data), "--recipe", options.recipe]
    command += ["--output", str(run), "--set", "model.dropout=0.1"]
    for name, value in settings.items():
        command += ["--set", f"training.{name}={value}"]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(f"qkv train failed:\n{ran.stderr[-2000:]}")
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def timed(system: Iterator[int], warm_up: int, steps: int) -> float:
    """Tokens/s over some steps after some others."""
    for _ in range(warm_up):
        next(system)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    seen = sum(next(system) for _ in range(steps))
    torch.cuda.synchronize()
    return seen / (time.perf_counter() - begin)


_MARKS = Marks(PADDING, BEGIN, END)


def qkv_steps(config: Config, corpus: Corpus, vocabulary: int, tokens: int) -> Iterator[int]:
    """The trainer's own step; each gives the number of real tokens it saw."""
    width = config.data.row_width
    batches = Batches(corpus, width=width, rows_a_step=tokens // width, marks=_MARKS, seed=1)
    step = Learner.begin(config, vocabulary, Processes()).take_step
    number = 0
    while True:
        batch = batches.of_step(number)
        number += 1
        step.begin(batch, number)()
        yield batch.source_tokens + batch.target_tokens


def show(speeds: dict[str, float], how: str) -> None:
    for name, value in speeds.items():
        print(f"{name:28} {value:11,.0f} source + target tokens/s   qkv is {speeds['qkv'] / value:.2f} times that")
    print(how)


if __name__ == "__main__":
    main()
