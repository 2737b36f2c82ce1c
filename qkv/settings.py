"""Settings by their names: listed, replaced as `--set` asks, and kept as JSON."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qkv.config import Config
from qkv.errors import ConfigError
from qkv.values import describe, fits, parse


def override_all(config: Config, values: Mapping[str, str]) -> Config:
    """The config with settings replaced as `--set training.steps=500` asks: only all together must make sense."""
    known = dict(settings(config))
    changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"no setting is called {name!r}{_suggestion(name, known)}")
        section, _, setting = name.partition(".")
        kind = typing.get_type_hints(type(getattr(config, section)))[setting]
        changes.setdefault(section, {})[setting] = parse(name, value, kind)
    return config.with_changes(**changes)


def settings(config: Config) -> Iterator[tuple[str, Any]]:
    """Every setting as (dotted name, value), in the order of the classes above."""
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        for setting in dataclasses.fields(part):
            yield f"{section.name}.{setting.name}", getattr(part, setting.name)


def to_json(config: Config) -> str:
    return json.dumps(dataclasses.asdict(config), indent=2) + "\n"


def from_json(text: str) -> Config:
    """The config that `to_json` wrote; a setting it does not know is an error, a missing one takes its default."""
    try:
        sections = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the configuration is not JSON: {error}") from error
    if not isinstance(sections, dict):
        raise ConfigError("the configuration is not a JSON object of sections")
    config = Config()
    names = [section.name for section in dataclasses.fields(config)]
    known = dict(settings(config))
    for section, values in sections.items():
        if section not in names:
            raise ConfigError(f"no section is called {section!r}{_suggestion(section, names)}")
        if not isinstance(values, dict):
            raise ConfigError(f"section {section!r} takes an object of settings, not {values!r}")
        for setting in values:
            if f"{section}.{setting}" not in known:
                raise ConfigError(
                    f"no setting is called '{section}.{setting}'{_suggestion(f'{section}.{setting}', known)}"
                )
    parts = {name: _section(type(getattr(config, name)), name, sections.get(name, {})) for name in names}
    return Config(**parts)


def _section(kind: type[Any], section: str, values: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    for setting, value in values.items():
        if not fits(value, hints[setting]):
            raise ConfigError(f"{section}.{setting} takes {describe(hints[setting])}, not {value!r}")
    return kind(**values)


def _suggestion(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    word = name.rpartition(".")[2] or name
    by_last_word = [one for one in known if one.rpartition(".")[2] == word]
    longer = [one for one in known if word and word in one.rpartition(".")[2].split("_")]
    best = (by_last_word or close or longer)[:1]
    return f"; did you mean {best[0]!r}?" if best else "; `qkv recipes base` lists every setting"
