"""How a number came about: the command that leads to it, the code and the machine, and what differs from the recipe."""

from __future__ import annotations

import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkv.config import Config
from qkv.reproduce.data import Data
from qkv.reproduce.plan import Length
from qkv.settings import settings

Changed = Mapping[str, Mapping[str, Any]]
"""Of each setting that is not as in the recipe, what it is there (`recipe`) and what it is here (`here`)."""
_WHICH_COMMIT = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
_PATIENCE = 30.0
"""Seconds for git, which looks at every file of the project."""


def command(
    name: str,
    data: Data,
    length: Length,
    changes: Mapping[str, str],
    options: Mapping[str, Sequence[object]],
    *,
    processes: int = 1,
) -> str:
    """What leads to the same numbers when it is typed; where things are kept and how long a call may last does not."""
    given: Mapping[str, Sequence[object]] = {
        "data": words_of(data.directory),
        **options,
        "budget": [f"{length.seconds:f}".rstrip("0").rstrip(".") + "s"] if length.seconds is not None else [],
        "steps": words_of(length.steps),
    }
    words = ["torchrun", "--nproc-per-node", str(processes), "-m"] if processes > 1 else []
    words += ["qkv", "reproduce", name]
    for option, values in given.items():
        words += [f"--{option}", *map(str, values)] if values else []
    for setting, value in changes.items():
        words += ["--set", f"{setting}={value}"]
    return shlex.join(words)


def words_of(value: object | None) -> list[object]:
    """Those of an option that takes one and may not have been given."""
    return [] if value is None else [value]


def commit_of(file: Path) -> str | None:
    """The commit that a file is of, where git knows the file; it ends in `-dirty` where something was changed since."""
    git = shutil.which("git")
    if git is None:
        return None
    asking = [git, "--no-optional-locks", "-C", str(file.parent)]
    # An environment may lie in the repository of another project, whose commit says nothing about what is in it.
    for question in (["ls-files", "--error-unmatch", file.name], _WHICH_COMMIT):
        try:
            answer = subprocess.run([*asking, *question], capture_output=True, text=True, check=True, timeout=_PATIENCE)
        except (OSError, subprocess.SubprocessError):
            return None
    return answer.stdout.strip()


def code_of(runs: Iterable[Mapping[str, Any]]) -> str:
    """The versions that runs were trained by, each once."""
    found = {
        f"qkv {run['qkv']}, torch {run['torch']}" + (f", commit {run['commit']}" if run.get("commit") else "")
        for run in runs
    }
    return " and ".join(sorted(found))


def processor() -> str:
    """What a processor calls itself, where the system tells."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        told = []
    names = [line.partition(":")[2].strip() for line in told if line.startswith("model name")]
    return next(filter(None, names), platform.processor() or platform.machine())


def elsewhere(data: Data, corpus: str) -> list[str]:
    """What it was learned from, where that is not the corpus."""
    return [] if data.directory is None else [f"learned from {data.directory} instead of {corpus}"]


def changed(recipe: Config, here: Config) -> Changed:
    """Every setting that is not as in the recipe."""
    ours = dict(settings(here))
    return {name: {"recipe": value, "here": ours[name]} for name, value in settings(recipe) if ours[name] != value}


def described(runs: Mapping[str, Changed]) -> list[str]:
    """Each changed setting of these runs once, with the runs that have it where these are not all."""
    having: dict[str, list[str]] = {}
    for run, settings_of_run in runs.items():
        for name, values in settings_of_run.items():
            said = f"{name}={_written(values['here'])} instead of {_written(values['recipe'])}"
            having.setdefault(said, []).append(run)
    return [f"{said}{_which(some, [*runs])}" for said, some in having.items()]


def compared(recipe: str, differences: Sequence[str]) -> str:
    """One line of what differs."""
    return f"differs from {recipe}: {', '.join(differences)}" if differences else f"nothing differs from {recipe}"


def _which(some: Sequence[str], all_runs: Sequence[str]) -> str:
    others = [run for run in all_runs if run not in some]
    if not others:
        return ""
    return f" (all but {', '.join(others)})" if len(others) < len(some) else f" ({', '.join(some)})"


def _written(value: Any) -> str:
    """A value as `--set` takes it, to six digits."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
