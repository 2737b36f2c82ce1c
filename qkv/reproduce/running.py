"""One run of a reproduction: trained to its end, and its translations, each done once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
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
from qkv.run import RunDirectory
from qkv.storage import write_atomically
from qkv.text.files import read_lines
from qkv.training.loop import train_run
from qkv.training.plan import require_ready
from qkv.training.processes import Processes
from qkv.translate import Translator


def trained(
    config: Config, directory: Path, prepared: Prepared, processes: Processes, deadline: float | None
) -> dict[str, Any] | None:
    """Trains a run to its end, and tells what it took and how good it is; None where time was up before."""
    run = RunDirectory(directory)
    processes.by_first(lambda: require_ready(config, run))
    # A reproduction has done other things before, so that no call of it is in vain.
    if not train_run(config, run, prepared, processes, deadline=deadline, got_on=True):
        return None
    device = processes.own_device(choose_device(config.training.device))
    release_memory(device)
    told: dict[str, Any] = processes.by_first(lambda: _told(run, prepared, device, processes.count))
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


def _told(run: RunDirectory, prepared: Prepared, device: torch.device, processes: int) -> dict[str, Any]:
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
        "device": "CPU" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "processes": processes,
        "torch": torch.__version__,
        "qkv": qkv.__version__,
        "data": prepared.fingerprint,
    }
