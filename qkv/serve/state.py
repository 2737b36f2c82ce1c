"""What outlives a server: glossaries and what keys have used, in a directory, each file written whole or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError, QkvError
from qkv.serve.telling import LOG
from qkv.storage import write_atomically

_USAGE = "usage.json"
_GLOSSARIES = "glossaries"


class State:
    """A directory of JSON files, or nothing, where nothing is to be kept."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._last_usage: Any = None
        # Who keeps it last has what is newest: a thread may still be at what was before.
        self._keeping = threading.Lock()
        if directory is not None:
            try:
                (directory / _GLOSSARIES).mkdir(parents=True, exist_ok=True)
                # Terms are their owners' own.
                directory.chmod(0o700)
            except OSError as error:
                raise ConfigError(
                    f"cannot keep anything in {directory}: {error.strerror}; name another --state"
                ) from error

    def usage(self) -> Any:
        """What was told to be kept last; None where nothing was."""
        return None if self._directory is None else _read(self._directory / _USAGE)

    def keep_usage(self, usage: Any) -> None:
        """Where that fails it is told, and tried again the next time: nobody's request is the worse for it."""
        with self._keeping:
            if self._directory is None or usage == self._last_usage:
                return
            try:
                _write(self._directory / _USAGE, usage)
            except QkvError as error:
                LOG.error("usage is not kept: %s", error)
                return
            self._last_usage = usage

    def glossaries(self) -> list[Any]:
        if self._directory is None:
            return []
        read = (_read(path) for path in sorted((self._directory / _GLOSSARIES).glob("*.json")))
        return [one for one in read if one is not None]

    def keep_glossary(self, number: str, glossary: Any) -> None:
        self._with(number, lambda path: _write(path, glossary))

    def drop_glossary(self, number: str) -> None:
        self._with(number, lambda path: path.unlink(missing_ok=True))

    def _with(self, number: str, act: Callable[[Path], None]) -> None:
        if self._directory is not None:
            act(self._directory / _GLOSSARIES / f"{number}.json")


def _write(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, ensure_ascii=False).encode())


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        LOG.error("%s cannot be read, and is left out: %s", path, error)
        return None
