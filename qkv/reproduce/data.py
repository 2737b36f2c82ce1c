"""What is learned from: a public corpus that is fetched and prepared, or data that is there."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qkv.config import Config
from qkv.errors import ConfigError
from qkv.fetch import corpus, fetch
from qkv.prepare import Prepared
from qkv.settings import override_all
from qkv.translate.directions import directions_of


@dataclass(frozen=True)
class Data:
    """The directory of prepared data, or where corpora are kept and where they come from."""

    directory: Path | None = None
    corpora: str | os.PathLike[str] = "corpora"
    mirror: str | None = None


def obtained(name: str, data: Data, changes: Mapping[str, str], say: Callable[[str], None]) -> tuple[str, list[str]]:
    """The directory of prepared data, and the files of its test set, source and reference in turn."""
    of_text = {setting: value for setting, value in changes.items() if setting not in of_training(changes)}
    if data.directory is not None:
        if of_text:
            raise ConfigError(f"{', '.join(of_text)}: settled when {data.directory} was prepared; leave it out")
        prepared = Prepared.open(data.directory)
        _require_one_direction(prepared.applied_to(Config()), str(data.directory))
        return str(prepared.directory), [str(path) for path in prepared.valid_files]
    config = override_all(corpus(name).config(), of_text)
    _require_one_direction(config, name)
    fetched = fetch(name, data.corpora, mirror=data.mirror, say=say)
    prepared = fetched.prepare(config)
    say(prepared.summary())
    return str(prepared.directory), [str(path) for path in fetched.test]


def on_corpus(name: str, config: Config) -> Config:
    """The settings, with those of text and data that the corpus has by itself."""
    theirs = corpus(name).config()
    return config.with_changes(text=dataclasses.asdict(theirs.text), data=dataclasses.asdict(theirs.data))


def _require_one_direction(config: Config, data: str) -> None:
    several = directions_of(config.text)
    if len(several) > 1:
        raise ConfigError(
            f"{data} is of several directions, {', '.join(map(str, several))}, and each of the paper's results is of "
            f"one; prepare it with --directions {several[0]}, or leave out text.directions"
        )


def of_training(changes: Mapping[str, str]) -> dict[str, str]:
    """Those changes that are none of text and data."""
    return {name: value for name, value in changes.items() if not name.startswith(("text.", "data."))}
