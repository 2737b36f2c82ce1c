"""Settings of a server: one table, read from flags, the environment and a TOML file, in that order of weight."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError
from qkv.serve.toml import read_toml

PREFIX = "QKV_SERVE_"
"""What the names of environment variables begin with."""
_TYPED = {"from": "source", "to": "target"}
"""Names that are typed, and the settings that they are of: Python has another use for the first."""


def _setting(default: Any, told: str, metavar: str | None = None) -> Any:
    return field(default=default, metadata={"told": told, "metavar": metavar})


@dataclass(frozen=True)
class Settings:
    """Every setting of a server."""

    model: str = _setting("", "a model, or a directory of models; without it, all where models are kept", "DIR")
    source: str = _setting("", "only from this language; needed where the model does not say which it reads", "CODE")
    target: str = _setting("", "only into this language; needed where the model does not say which it writes", "CODE")
    device: str = _setting("auto", "auto, cpu, cuda or cuda:1; exported models are for CPUs", "DEVICE")
    host: str = _setting("127.0.0.1", "address to listen on", "ADDRESS")
    port: int = _setting(5000, "port to listen on; 0 takes a free one", "N")

    beam: int = _setting(0, "width of the search; 0 is the model's own", "N")
    batch_tokens: int = _setting(4096, "positions translated at once, beams included", "N")
    batch_wait: float = _setting(0.004, "seconds a batch waits for requests that are on their way", "SECONDS")
    queue_tokens: int = _setting(32_768, "tokens that may wait; requests beyond them are turned away", "N")
    queue_seconds: float = _setting(4.0, "seconds of work that may wait, by the speed that was measured", "SECONDS")

    request_bytes: int = _setting(1 << 20, "bytes of a request's body", "N")
    request_texts: int = _setting(1024, "texts of a request", "N")
    request_characters: int = _setting(50_000, "characters of a request", "N")
    request_tokens: int = _setting(32_768, "tokens of a request, three bytes of its texts each", "N")
    inspected_tokens: int = _setting(160, "tokens of a sentence that is looked into", "N")
    request_alternatives: int = _setting(5, "alternatives of a translation", "N")
    file_bytes: int = _setting(10 << 20, "bytes of a file", "N")
    buffered_bytes: int = _setting(64 << 20, "bytes of all bodies that are being received", "N")

    engine_timeout: float = _setting(
        60.0,
        "seconds that the process which translates may be silent at work, twice, before it is begun anew",
        "SECONDS",
    )
    file_timeout: float = _setting(
        30.0, "seconds of a core that taking a file apart may take, and putting it together", "SECONDS"
    )
    deadline: float = _setting(30.0, "seconds until a request is given up", "SECONDS")
    header_timeout: float = _setting(10.0, "seconds a client may take for the head of a request", "SECONDS")
    body_timeout: float = _setting(20.0, "seconds a client may take for the body", "SECONDS")
    write_timeout: float = _setting(20.0, "seconds a client may take to read a part of an answer", "SECONDS")
    idle_timeout: float = _setting(30.0, "seconds an idle connection is kept", "SECONDS")
    connections: int = _setting(8192, "open connections; those that send nothing leave first", "N")
    drain_delay: float = _setting(0.5, "seconds between not being ready and not listening, when stopped", "SECONDS")
    drain_timeout: float = _setting(30.0, "seconds that accepted work has to be finished in, when stopped", "SECONDS")

    keys: str = _setting("", "file of API keys (qkv serve --new-key NAME); without one, nobody needs a key", "FILE")
    state: str = _setting("", "directory to keep glossaries and usage in; else they end with the server", "DIR")
    cors: str = _setting("", "origins whose pages may ask, with commas between; * is all", "ORIGINS")
    metrics: bool = _setting(True, "whether /metrics answers", "true|false")
    log: str = _setting("warning", "what is told: debug, info, warning or error", "LEVEL")

    def __post_init__(self) -> None:
        for name in ("batch_tokens", "queue_tokens", "queue_seconds", "request_bytes", "request_texts",
                     "request_characters", "request_tokens", "inspected_tokens",
                     "file_bytes", "buffered_bytes", "engine_timeout", "file_timeout", "deadline", "header_timeout",
                     "body_timeout", "write_timeout", "idle_timeout", "connections"):  # fmt: skip
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be more than 0")
        for name in ("beam", "batch_wait", "request_alternatives", "drain_delay", "drain_timeout"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        for name, value in vars(self).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"{name} is {value}; it must be a number of seconds")
        if not 0 <= self.port < 65_536:
            raise ConfigError(f"port is {self.port}; it must be from 0 to 65535")
        if self.log not in _LEVELS:
            raise ConfigError(f"log is {self.log!r}; it must be one of {', '.join(_LEVELS)}")
        if self.beam and self.request_alternatives >= self.beam:
            # A beam finds no more than it is wide; a request for more would have to be refused each time.
            object.__setattr__(self, "request_alternatives", self.beam - 1)


_LEVELS = ("debug", "info", "warning", "error")


def read_settings(flags: Mapping[str, Any], file: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """What the flags say, else the environment, else the file, else the defaults."""
    names = {one.name: one for one in dataclasses.fields(Settings)}
    given: dict[str, Any] = {}
    if file is not None:
        typed = read_toml(file)
        for name, value in {_TYPED.get(name, name): value for name, value in typed.items()}.items():
            given[name] = _checked(name, value, str(file))
    for variable, text in environment.items():
        if variable.startswith(PREFIX):
            typed_name = variable[len(PREFIX) :].lower()
            name = _TYPED.get(typed_name, typed_name)
            given[name] = _checked(name, _parsed(name, text, variable), variable)
    given |= {name: value for name, value in flags.items() if name in names and value is not None}
    return Settings(**given)


def parse(name: str, text: str) -> Any:
    """The value of a setting, from how it is typed."""
    kind: Callable[[str], Any] = type(_field(name, name).default)
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(f"{text!r} is neither true nor false")
        return _TRUTH[text.lower()]
    return kind(text)


_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _parsed(name: str, text: str, where: str) -> Any:
    kind = type(_field(name, where).default).__name__
    try:
        return parse(name, text)
    except ValueError as error:
        raise ConfigError(f"{where} is {text!r}; it must be a {_WORDS[kind]}") from error


_WORDS = {"int": "whole number", "float": "number", "str": "text", "bool": "true or false"}


def _checked(name: str, value: Any, where: str) -> Any:
    kind = type(_field(name, where).default)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}: {name} is {value!r}; it must be a {_WORDS[kind.__name__]}")
    return value


def _field(name: str, where: str) -> dataclasses.Field[Any]:
    fields = {one.name: one for one in dataclasses.fields(Settings)}
    if name not in fields:
        close = difflib.get_close_matches(name, fields, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; there is: {', '.join(fields)}"
        raise ConfigError(f"{where}: there is no setting called {name!r}{hint}")
    return fields[name]
