"""How fast `qkv prepare` is, in pairs a minute a core, and whether its memory grows with the corpus.

    python -m bench.prepare_speed [--pairs 100000 1000000] [--workers 2] [--output FILE.json]

Sentences are made up of words drawn as in real text (Zipf), 3 to 40 words long. The bars: 50,000 pairs a minute a core,
and the same memory for ten times the pairs. Beyond `text.sample_lines`, which both sizes exceed here, learning the
vocabulary costs the same for any corpus; it is in the time and, as a process of its own, in the memory.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.options import one_or_more, told
from qkv.errors import ConfigError

SETTINGS = {"vocabulary": 8000, "sample_lines": 100_000}
BAR = 50_000
_FEWEST = 100
"""Pairs: fewer do not have as many subwords as are learned."""


def main() -> int:
    """The exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pairs", type=one_or_more, nargs="+", default=[100_000, 1_000_000])
    arguments.add_argument("--workers", type=one_or_more, default=2)
    arguments.add_argument("--output", type=Path)
    arguments.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    return told("bench.prepare_speed", lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    if options.inside:
        measure_inside(options.inside, options.workers)
        return
    if min(options.pairs) < _FEWEST:
        raise ConfigError(
            f"--pairs {min(options.pairs)} have no {SETTINGS['vocabulary']:,} subwords; give {_FEWEST} or more"
        )
    results = [measure(pairs, options.workers) for pairs in options.pairs]
    for result in results:
        print(
            f"{result['pairs']:>10,} pairs, {result['workers']} workers: {result['seconds']:7.1f} s, "
            f"{result['pairs_a_minute_a_core']:>9,.0f} pairs a minute a core (bar {BAR:,}); "
            f"peak {result['peak_main_mb']:.0f} MB in the main process, {result['peak_tree_mb']:.0f} MB in all"
        )
    growth = results[-1]["peak_tree_mb"] / results[0]["peak_tree_mb"]
    print(f"memory for {results[-1]['pairs'] / results[0]['pairs']:.0f} times the pairs: {growth:.2f} times")
    if options.output:
        options.output.write_text(json.dumps({"machine": platform.platform(), "results": results}, indent=2) + "\n")


def measure(pairs: int, workers: int) -> dict[str, float]:
    """Prepares a made-up corpus in a fresh process, so that peaks of memory are its own."""
    with tempfile.TemporaryDirectory() as directory:
        make_corpus(Path(directory), pairs)
        command = [sys.executable, "-m", "bench.prepare_speed", "--inside", directory, "--workers", str(workers)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        peak = [0.0]
        watcher = threading.Thread(target=watch, args=(process, peak))
        watcher.start()
        try:
            answer, _ = process.communicate()
        finally:
            # Who stops this stops what it measures, which has to end before its folder goes.
            process.terminate()
            watcher.join()
        if process.returncode:
            sys.exit(process.returncode)
    inside = json.loads(answer)
    seconds = inside["seconds"]
    return {
        "pairs": pairs,
        "workers": workers,
        "seconds": seconds,
        "pairs_a_minute_a_core": pairs / seconds * 60 / workers,
        "peak_main_mb": inside["peak_main_mb"],
        "peak_tree_mb": peak[0],
    }


def measure_inside(directory: Path, workers: int) -> None:
    from qkv.config import Config
    from qkv.prepare import prepare

    begin = time.perf_counter()
    files = [directory / "corpus.source", directory / "corpus.target"]
    prepare(files, directory / "out", Config().with_changes(text=SETTINGS), workers=workers)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_main_mb": peak}))


def watch(process: subprocess.Popen[str], peak: list[float]) -> None:
    """Keeps the highest sum of memory of the process and its children; shared pages count once for each."""
    while process.poll() is None:
        tree = [process.pid, *children(process.pid)]
        peak[0] = max(peak[0], sum(map(resident_mb, tree)))
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def resident_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def make_corpus(directory: Path, pairs: int) -> None:
    generator = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkqjxzéüß"
    weights = [1 / rank for rank in range(1, len(letters) + 1)]
    words = ["".join(generator.choices(letters, weights, k=generator.randint(1, 11))) for _ in range(50_000)]
    likelihood = [1 / rank for rank in range(1, len(words) + 1)]
    drawn = generator.choices(words, likelihood, k=2_000_000)
    with (directory / "corpus.source").open("w") as source, (directory / "corpus.target").open("w") as target:
        for _ in range(pairs):
            first = generator.randrange(len(drawn) - 40)
            sentence = drawn[first : first + generator.randint(3, 40)]
            source.write(" ".join(sentence) + "\n")
            target.write(" ".join(word[::-1] for word in sentence) + "\n")


if __name__ == "__main__":
    sys.exit(main())
