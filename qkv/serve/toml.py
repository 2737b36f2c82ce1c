"""Files that who runs a server writes by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from qkv.errors import ConfigError


def read_toml(path: Path, remedy: str | None = None) -> dict[str, Any]:
    """What is in a file; `remedy` is what to do where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}" + (f"; {remedy}" if remedy else "")) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
