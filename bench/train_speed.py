"""Training tokens/s: qkv beside transformers' MarianMTModel and torch.nn.Transformer, on the same sentences.

    python -m bench.train_speed                                        # on a CPU: base, made-up sentences
    python -m bench.train_speed --recipe C-width256 --vocabulary 8000 --tokens 2048
    python -m bench.train_speed --data data/ --recipe big              # on a GPU: sentences that qkv prepare wrote
    python -m bench.train_speed --data data/ --profile                 # where the time of a step goes

Tokens are real source and target tokens, padding not counted; every step of the optimizer is included, dropout and
label smoothing are 0.1. Peers get batches sorted by length and padded; on a GPU they run in bfloat16 by autocast.
On a GPU, qkv is `qkv train` itself, as a user runs it, over all steps but the first 50: with batches that a GPU likes,
and with those of the recipe. Peers get batches of the same sizes, and their best counts; how they do with the same size
is told beside it. On a CPU, steps of all systems take turns, so that a noisy machine disturbs all alike: compare only
the ratios.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.arithmetic import LIMIT, LIMITED, operations_a_token
from bench.marian import BEGIN, END, PADDING
from bench.options import more_than_marks, one_or_more, told
from bench.peers import PEERS, PaddedBatch, fill, peer_steps, sorted_batches, unlike_peers
from bench.profile import profile_step
from bench.sentences import write_corpus
from qkv.config import Config
from qkv.data.batches import Batches, Marks
from qkv.data.corpus import Corpus
from qkv.devices import choose_device, release_memory
from qkv.errors import ConfigError, TrainingError
from qkv.prepare import Prepared
from qkv.recipes import RECIPES, recipe
from qkv.settings import override_all
from qkv.training.feeding import batches_of
from qkv.training.learner import Learner
from qkv.training.processes import Processes

ALIKE = {"model.dropout": "0.1", "training.label_smoothing": "0.1"}
"""What all systems are measured with, whatever a recipe says."""
_SKIPPED = 50
"""The first steps of a run on a GPU, in which kernels are compiled and the step is captured."""
_GPU_TOKENS = {"big": 32_768}
"""Target positions a step that a GPU likes; 65,536 for the other recipes."""
_PEER_STEPS = 40
"""Measured after a pass over the same batches: what a new shape costs (0.3 s for a plan of cuDNN's attention) is not
theirs to pay here."""
_MADE_UP = 37_000
"""Subwords of made-up sentences."""
_PAIRS = 100_000
"""Made-up ones: enough that sentences of a batch are about as long."""
_MARKS = Marks(PADDING, BEGIN, END)


class Speed(NamedTuple):
    """What a system did with batches of at most so many target positions."""

    system: str
    positions: int
    tokens_per_second: float
    """0 where the memory is too small for such batches."""
    filled: float
    """The share of the batches' positions, as many on either side, that are no padding."""


def main() -> int:
    """The exit code."""
    parser = _parser()
    options = parser.parse_args()
    if options.recipe not in RECIPES:
        parser.error(f"no recipe {options.recipe!r}; there are {', '.join(RECIPES)}")
    config = override_all(recipe(options.recipe), ALIKE)
    unlike = unlike_peers(config)
    if unlike and not options.alone:
        parser.error(f"the peers have no {', '.join(unlike)}: measure recipe {options.recipe} with --alone")
    if not options.alone and importlib.util.find_spec("transformers") is None:
        parser.error("MarianMTModel is transformers', which is not installed; install it, or measure with --alone")
    device = choose_device("auto")
    if device.type == "cuda":
        if options.data is None:
            parser.error("on a GPU, --data DIRECTORY: what qkv prepare wrote")
        if options.vocabulary is not None:
            parser.error("--vocabulary is for made-up sentences, and those of --data have theirs")
        return told("bench.train_speed", lambda: on_data(config, options, device))
    if options.profile or options.data is not None:
        parser.error("--profile and --data are for a GPU, and there is none; without them, sentences are made up")
    return told("bench.train_speed", lambda: on_cpu(config, options))


def on_cpu(config: Config, options: argparse.Namespace) -> None:
    """All systems take turns, a step each."""
    sizes, steps = sizes_of(config, options.tokens or [4096]), options.steps or 6
    vocabulary = options.vocabulary or _MADE_UP
    config = config.with_changes(text={"vocabulary": vocabulary})
    with tempfile.TemporaryDirectory() as directory:
        corpus = write_corpus(Path(directory), pairs=_PAIRS, vocabulary=vocabulary, longest=config.data.row_width - 1)
        systems = {("qkv", size): qkv_steps(config, corpus, vocabulary, size) for size in sizes}
        filled: dict[tuple[str, int], float] = {}
        for name, size in () if options.alone else itertools.product(PEERS, sizes):
            batches = sorted_batches(corpus, size, count=steps + 2)
            systems[name, size] = peer_steps(name, config, vocabulary, batches, torch.device("cpu"))
            filled[name, size] = fill(batches)
        speeds: dict[tuple[str, int], list[float]] = {system: [] for system in systems}
        for number in range(steps + 2):
            for system, taking in systems.items():
                begin = time.perf_counter()
                seen = next(taking)
                filled.setdefault(system, seen / _positions(config.data.row_width, system[1]))
                if number >= 2:
                    speeds[system].append(seen / (time.perf_counter() - begin))
    show([Speed(*system, float(np.median(values)), filled[system]) for system, values in speeds.items()])
    print(f"median of {steps} steps")


def on_data(config: Config, options: argparse.Namespace, device: torch.device) -> None:
    """One system after the other; qkv's own figures come from its log."""
    prepared = Prepared.open(options.data)
    config = prepared.applied_to(config)
    own = config.training.tokens_per_batch
    liked = [_GPU_TOKENS.get(options.recipe, 65_536), *([own] if own != "auto" else [])]
    sizes, steps = sizes_of(config, options.tokens or liked), options.steps or 250
    corpus, vocabulary = prepared.corpus("train"), prepared.tokenizer().size
    print(f"{_machine(device, options)}, {options.recipe}, {vocabulary:,} subwords", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        train(options, Path(directory) / "run", sizes[0], steps=1)
        print(f"from the command to the end of a run of one step: {time.perf_counter() - begin:.1f} s", flush=True)
    speeds = [qkv_speed(options, size, steps, config.row_width) for size in sizes]
    for name, size in () if options.alone else itertools.product(PEERS, sizes):
        batches = sorted_batches(corpus, size, count=_PEER_STEPS)
        speeds.append(Speed(name, size, peer_speed(name, config, vocabulary, batches, device), fill(batches)))
        # Only here is an error gone, and with it all that it led to.
        release_memory(device)
    lengths = corpus.source_lengths() + 1, corpus.target_lengths() + 1
    known = LIMITED in _name(device)
    show(speeds, operations_a_token(config.model, vocabulary, *lengths) if known else None)
    print(f"mean of {steps} steps; peers of {_PEER_STEPS}, after as many of the same shapes")
    if options.profile:
        profiled = config.with_changes(training={"tokens_per_batch": sizes[0]})
        profile_step(profiled, batches_of(profiled, prepared, "train").of_step(0), vocabulary)


def sizes_of(config: Config, sizes: Sequence[int]) -> list[int]:
    """Each of them once, in this order."""
    for size in sizes:
        if size < config.row_width:
            raise ConfigError(f"--tokens {size} is less than a row of {config.row_width}")
    return list(dict.fromkeys(sizes))


def qkv_speed(options: argparse.Namespace, tokens: int, steps: int, width: int) -> Speed:
    """That of `qkv train` after its first steps; prints what it says of its memory and of a GPU that waits."""
    with tempfile.TemporaryDirectory() as directory:
        log = train(options, Path(directory) / "run", tokens, steps=steps + _SKIPPED)
    first, *measured = (line for line in log if line["kind"] == "train")
    # The last report may be of fewer steps than the others.
    seconds = np.diff([line["seconds"] for line in (first, *measured)])
    speed, idle = (
        float(np.average([line[name] for line in measured], weights=seconds)) for name in ("tokens_per_second", "idle")
    )
    held = f", and tensors hold {measured[-1]['memory'] / 1e9:.1f} GB of memory at most" if "memory" in first else ""
    print(
        f"qkv: {speed:,.0f} tokens/s with {tokens:,} target positions a step; the device waits {idle:.2%} of the time"
        f"{held}",
        flush=True,
    )
    learned = sum(line["tokens_per_second"] * second for line, second in zip(measured, seconds, strict=True))
    return Speed("qkv", tokens, speed, learned / (_positions(width, tokens) * (measured[-1]["step"] - first["step"])))


def _positions(width: int, tokens: int) -> int:
    """Of a step of ours, source and target: as many whole rows as fit."""
    return 2 * (tokens // width) * width


def train(options: argparse.Namespace, run: Path, tokens: int, *, steps: int) -> list[dict[str, Any]]:
    """`qkv train`, and what it logged."""
    settings = {
        **ALIKE, "training.steps": steps, "training.tokens_per_batch": tokens, "training.report_every": _SKIPPED,
        "training.validate_every": 10**6, "training.validation_sentences": 0, "training.save_every": 10**6,
    }  # fmt: skip
    command = [sys.executable, "-m", "qkv", "train", "--data", str(options.data), "--recipe", options.recipe]
    command += ["--output", str(run)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if ran.returncode:
        raise TrainingError(f"qkv train failed:\n{ran.stderr[-2000:]}")
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def peer_speed(name: str, config: Config, vocabulary: int, batches: list[PaddedBatch], device: torch.device) -> float:
    """Tokens/s of a peer; 0 where the device has too little memory for such batches."""
    try:
        return timed(peer_steps(name, config, vocabulary, batches, device), _PEER_STEPS, _PEER_STEPS, device)
    except torch.OutOfMemoryError:
        return 0.0


def timed(system: Iterator[int], warm_up: int, steps: int, device: torch.device) -> float:
    """Tokens/s over some steps after some others."""
    for _ in range(warm_up):
        next(system)
    _wait_for(device)
    begin = time.perf_counter()
    seen = sum(next(system) for _ in range(steps))
    _wait_for(device)
    return seen / (time.perf_counter() - begin)


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


def show(speeds: Sequence[Speed], operations: float | None = None) -> None:
    """The table, and how qkv compares with each peer at its best, and at the same size where that is not its best.

    Given the operations of a token, on hardware whose limit is known, the table has their share of it.
    """
    share = "" if operations is None else f"  of {LIMIT / 1e12:.0f} TFLOP/s"
    print(f"{'':28} {'target positions a step':>24} {'filled':>7} {'source + target tokens/s':>25}{share}")
    for system, positions, speed, filled in speeds:
        amount = "too little memory" if not speed else f"{speed:,.0f}"
        part = "" if operations is None or not speed else f"{speed * operations / LIMIT:{len(share)}.1%}"
        print(f"{system:28} {positions:24,} {filled:7.1%} {amount:>25}{part}")
    ours = [one for one in speeds if one.system == "qkv"]
    for one, peer in itertools.product(ours, PEERS):
        theirs = [other for other in speeds if other.system == peer and other.tokens_per_second]
        if theirs:
            best = max(theirs, key=lambda other: other.tokens_per_second)
            alike = [other for other in theirs if other.positions == one.positions and other is not best]
            said = f"qkv with {one.positions:,} is {_times(one, best)} {peer} at its best, with {best.positions:,}"
            print(said + "".join(f", and {_times(one, other)} it with {other.positions:,}" for other in alike))


def _times(one: Speed, other: Speed) -> str:
    return f"{one.tokens_per_second / other.tokens_per_second:.2f} times"


def _machine(device: torch.device, options: argparse.Namespace) -> str:
    peers = "" if options.alone else f", transformers {version('transformers')}"
    return f"{_name(device)}, torch {torch.__version__}{peers}"


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base", help="the architecture (default: base)")
    parser.add_argument("--data", type=Path, help="a directory that qkv prepare wrote (needed on a GPU)")
    parser.add_argument("--vocabulary", type=more_than_marks, help=f"of made-up sentences (default: {_MADE_UP})")
    parser.add_argument(
        "--tokens",
        type=one_or_more,
        action="append",
        help="target positions a step; given again, other ones too (default: 4096; on a GPU 65536, or 32768 for big, "
        "and the recipe's own)",
    )
    parser.add_argument(
        "--steps", type=one_or_more, help="measured steps of each system (default: 6, or 250 of qkv on a GPU)"
    )
    parser.add_argument("--profile", action="store_true", help="show where the time of a step goes (GPU)")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
