"""Recipes side by side at equal time on one GPU: held-out loss and BLEU of each after the steps its speed allows.

    python -m bench.trials --data data/ --seconds 50            # every trial
    python -m bench.trials --data data/ --seconds 100 modern    # those whose name has this in it
    python -m bench.trials --list

Each trial is `qkv train` with settings of its own. First its speed is measured alone, over some steps that are thrown
away (once for all trials that do the same work a step); then it gets as many steps as fit the time. So trials may run
beside one another (--at-once), and what one GPU's time buys is compared, not what a busy GPU gave. One JSON line a
trial goes to --output.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

COMMON: dict[str, Any] = {
    "training.tokens_per_batch": 65_536,
    "training.schedule": "linear",
    "training.decay_from": 0.4,
    "training.warmup_steps": 80,
    "training.clip": 1.0,
    "training.epsilon": 1e-8,
    "training.final": "last",
    "training.keep_checkpoints": 1,
    "training.average_checkpoints": 1,
    "training.report_every": 50,
    "training.validation_sentences": 1000,
}
PRE = {"model.residual": "pre"}
MODERN = {
    **PRE,
    "model.norm": "rms",
    "model.positions": "rotary",
    "model.feed_forward": "gated",
    "model.hidden": 1344,
    "model.query_key_norm": "rms",
}
MUON = {"training.optimizer": "muon", "training.learning_rate": 6e-3, "training.rest_rate": 0.5}
HALF = {"training.tokens_per_batch": 32_768}
TRIALS: dict[str, dict[str, Any]] = {
    "AdamW 2e-3, pre-norm": {**PRE, "training.optimizer": "adamw", "training.learning_rate": 2e-3},
    "paper's schedule, Adam, post-norm": {
        "training.optimizer": "adam",
        "training.schedule": "paper",
        "training.learning_rate": 0.5,
        "training.warmup_steps": 400,
        "training.clip": "none",
    },
    "Muon 6e-3, post-norm": MUON,
    "Muon 6e-3, pre-norm": {**PRE, **MUON},
    "Muon 6e-3, pre-norm, silent": {**PRE, **MUON, "model.initial": "silent"},
    "Muon 6e-3, pre-norm, rotary": {**PRE, **MUON, "model.positions": "rotary"},
    "Muon 6e-3, pre-norm, normed queries and keys": {**PRE, **MUON, "model.query_key_norm": "rms"},
    "Muon 6e-3, modern": {**MODERN, **MUON},
    "Muon 6e-3, modern, silent": {**MODERN, **MUON, "model.initial": "silent"},
    "Muon 6e-3, modern, no dropout": {**MODERN, **MUON, "model.dropout": 0.0},
    "Muon 6e-3, modern, weight decay 0.1": {**MODERN, **MUON, "training.weight_decay": 0.1},
    "Muon 6e-3, modern, decay from 0.1": {**MODERN, **MUON, "training.decay_from": 0.1},
    "Muon 6e-3, modern, moving average": {
        **MODERN, **MUON, "training.final": "moving", "training.moving_average": 0.98,
    },
    "Muon 4e-3, modern, half the batch": {**MODERN, **MUON, **HALF, "training.learning_rate": 4e-3},
    "Muon 9e-3, modern": {**MODERN, **MUON, "training.learning_rate": 9e-3},
    "AdamW 2e-3, modern": {**MODERN, "training.optimizer": "adamw", "training.learning_rate": 2e-3},
}  # fmt: skip
COSTS_NOTHING = {"model.initial", "training.learning_rate", "training.weight_decay", "training.decay_from"}
"""Settings that change what a step learns, but not what it does."""
_PROBE = {"training.steps": 150, "training.validate_every": 10**6, "training.validation_sentences": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only trials with one of these in their name")
    parser.add_argument("--data", type=Path, help="a directory that qkv prepare wrote")
    parser.add_argument("--seconds", type=float, default=50.0, help="of the GPU for each trial (default: 50)")
    parser.add_argument("--at-once", type=int, default=3, help="trials that run beside one another (default: 3)")
    parser.add_argument("--output", type=Path, default=Path("trials.jsonl"))
    parser.add_argument("--list", action="store_true", help="show the trials and stop")
    options = parser.parse_args()
    chosen = {name: settings for name, settings in TRIALS.items() if _wanted(name, options.names)}
    if options.list or options.data is None:
        print("\n".join(chosen))
        return
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(options.at_once) as pool:
        steps = steps_in_time(options, Path(directory), chosen)
        for result in pool.map(lambda name: trial(options, Path(directory), name, steps[name]), chosen):
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{result['name']:48} {result['steps']:6,} steps  nll {result['nll']:.3f}  BLEU {result['bleu']:.2f}")


def _wanted(name: str, parts: list[str]) -> bool:
    return not parts or any(part in name for part in parts)


def steps_in_time(options: argparse.Namespace, directory: Path, chosen: dict[str, dict[str, Any]]) -> dict[str, int]:
    """How many steps of each trial fit the time, by the speed of its kind's last steps alone on the GPU."""
    found: dict[tuple[tuple[str, Any], ...], int] = {}
    steps = {}
    for name, settings in chosen.items():
        kind = tuple(sorted((key, value) for key, value in settings.items() if key not in COSTS_NOTHING))
        if kind not in found:
            log = train(options, directory / f"probe-{len(found)}", {**COMMON, **settings, **_PROBE})
            before, last = [line for line in log if line["kind"] == "train"][-2:]
            a_second = (last["step"] - before["step"]) / (last["seconds"] - before["seconds"])
            found[kind] = int(options.seconds * a_second)
        steps[name] = found[kind]
    return steps


def trial(options: argparse.Namespace, directory: Path, name: str, steps: int) -> dict[str, Any]:
    run = directory / f"trial-{list(TRIALS).index(name)}"
    ends = {"training.steps": steps, "training.validate_every": steps, "training.save_every": steps}
    log = train(options, run, {**COMMON, **TRIALS[name], **ends})
    last = [line for line in log if line["kind"] == "validation"][-1]
    return {"name": name, "steps": steps, "seconds": options.seconds, "nll": last["nll"], "bleu": last.get("bleu")}


def train(options: argparse.Namespace, run: Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """`qkv train`, and what it logged."""
    command = [sys.executable, "-m", "qkv", "train", "--data", str(options.data), "--output", str(run)]
    for setting, value in settings.items():
        command += ["--set", f"{setting}={value}"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
