"""What a run is to be, settled once: the same command goes on with it, however fast the machine is by then."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.config import Config
from qkv.errors import ConfigError, TextError
from qkv.prepare import Prepared
from qkv.reproduce.budget import shortened, steps_in_time
from qkv.settings import from_json, override_all, to_json
from qkv.storage import explained, write_atomically

_PLAN = "plan.json"


@dataclass(frozen=True)
class Length:
    """How long a run is: as long as its recipe says, or so many seconds or steps."""

    seconds: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and self.steps is not None:
            raise ConfigError("a budget of time and a number of steps are two lengths of a run; give one of them")
        if self.seconds is not None and self.seconds <= 0:
            raise ConfigError("a budget of no time trains nothing")
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"a run of {self.steps} steps is none; give 1 or more")


def planned(
    directory: Path,
    config: Config,
    length: Length,
    prepared: Prepared,
    changes: Mapping[str, str],
    fit: Callable[[Config, int], Config] = shortened,
) -> Config:
    """The settings of the run in a directory: those it was begun with, or new ones that fit its length.

    `changes` are what the user asked for, which holds whatever fits.
    """
    asked = {
        "settings": json.loads(to_json(config)),
        "length": dataclasses.asdict(length),
        "data": prepared.fingerprint,
    }
    path = directory / _PLAN
    if path.exists():
        before = _read(path)
        if before["asked"] != asked:
            raise ConfigError(
                f"{directory} was begun with other settings, another budget or other data; give those again, or "
                "another --work"
            )
        return from_json(json.dumps(before["settings"]))
    if length.seconds is not None or length.steps is not None:
        steps = length.steps or steps_in_time(config, prepared, length.seconds or 0.0)
        config = override_all(fit(config, steps), changes)
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    settled = {"asked": asked, "settings": json.loads(to_json(config))}
    write_atomically(path, (json.dumps(settled, indent=2) + "\n").encode())
    return config


def _read(path: Path) -> Mapping[str, Any]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        return {"asked": plan["asked"], "settings": plan["settings"]}
    except (ValueError, KeyError, TypeError) as error:
        raise TextError(f"{path} is damaged; remove {path.parent} to begin again") from error
