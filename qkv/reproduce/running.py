"""One run of a reproduction: trained to its end, and its translations, each done once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import qkv
from qkv.checkpoint import read_state
from qkv.config import Config
from qkv.devices import choose_device, release_memory
from qkv.models.build import count_parameters
from qkv.prepare import Prepared
from qkv.progress import Progress
from qkv.reproduce.provenance import changed, commit_of, processor
from qkv.run import RunDirectory
from qkv.storage import write_atomically
from qkv.text.files import read_lines
from qkv.training.attempts import train_run
from qkv.training.plan import require_ready
from qkv.training.processes import Processes
from qkv.translate import Translator

_MACHINE = "machine.json"
"""Beside a run: what trained it. A table may be printed elsewhere, by another version."""
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "device": str,
    "processes": int,
    "torch": str,
    "qkv": str,
    "commit": (str, type(None)),
}


def trained(
    config: Config,
    directory: Path,
    prepared: Prepared,
    processes: Processes,
    deadline: float | None,
    *,
    recipe: Config,
) -> dict[str, Any] | None:
    """Trains a run to its end, and tells what it took, how good it is, and what differs from its recipe.

    None where time was up before.
    """
    run = RunDirectory(directory)
    processes.by_first(lambda: require_ready(config, run))
    finished = processes.by_first(lambda: run.finished)
    # The code that is running, which may be replaced meanwhile.
    commit = processes.by_first(lambda: commit_of(Path(qkv.__file__)))
    # A reproduction has done other things before, so that no call of it is in vain.
    if not train_run(config, run, prepared, processes, deadline=deadline, got_on=True):
        return None
    device = processes.own_device(choose_device(config.training.device))
    release_memory(device)

    def facts() -> dict[str, Any]:
        here = _machine(device, processes.count, commit)
        kept = directory.with_name(_MACHINE)
        if not finished:
            write_atomically(kept, (json.dumps(here, indent=2) + "\n").encode())
        return {**_told(run, prepared, recipe), **_read_machine(kept, here)}

    told: dict[str, Any] = processes.by_first(facts)
    return told


def translated(directory: Path, sources: Sequence[str], device: str) -> list[str]:
    """The translations of the finished run in a directory, kept beside it in a file for each set of texts."""
    digest = hashlib.sha256("\n".join(sources).encode()).hexdigest()
    path, run = directory / f"translations-{digest[:8]}.txt", directory / "run"
    if not path.exists():
        translator = Translator.load(run, device=device)
        with Progress(f"translating with {run}", total=len(sources), unit="lines") as progress:
            translations = translator.translate(sources, progress=progress.advance)
        # Only a line feed ends a line, but what looks like an end of one is no text either.
        lines = [" ".join(one.text.splitlines()) for one in translations]
        write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
    return [*read_lines(path)]


def stopped(deadline: float | None, needed: float) -> bool:
    """Whether there is no time left for what takes so long."""
    return deadline is not None and time.monotonic() + needed >= deadline


def _told(run: RunDirectory, prepared: Prepared, recipe: Config) -> dict[str, Any]:
    config, state = run.config(), read_state(run.final)
    logged = [json.loads(line) for line in run.log.read_text(encoding="utf-8").splitlines()]
    validation = [line for line in logged if line["kind"] == "validation"][-1]
    return {
        "steps": state["step"],
        "seconds": round(validation["seconds"], 1),
        "tokens_per_batch": config.training.tokens_per_batch,
        "warmup_steps": config.training.warmup_steps,
        "seed": config.training.seed,
        "parameters": count_parameters(config.model, prepared.tokenizer().size),
        "perplexity": validation["perplexity"],
        "data": prepared.fingerprint,
        "changed": changed(recipe, config),
    }


def _machine(device: torch.device, processes: int, commit: str | None) -> dict[str, Any]:
    return {
        "device": f"CPU ({processor()})" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "processes": processes,
        "torch": torch.__version__,
        "qkv": qkv.__version__,
        "commit": commit,
    }


def _read_machine(path: Path, here: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was kept of a run that was trained before, maybe elsewhere; where nothing was, what is here."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return here
    sound = isinstance(kept, dict) and all(isinstance(kept.get(name), kind) for name, kind in _KINDS.items())
    return {name: kept[name] for name in _KINDS} if sound else here
