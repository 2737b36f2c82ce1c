"""A manifest says what a directory consists of: the size and SHA-256 of every file, and vouches for itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qkv.errors import CheckpointError, StorageError
from qkv.storage import file_digest, read_regular

MANIFEST = "manifest.json"

_LARGEST_JSON = 1 << 24
"""Bytes of a manifest or a state: a hundred times what they have, and far from what fills memory."""
_OLDER_MANIFEST = {"files", "qkv", "torch"}
"""What a manifest had before it vouched for itself."""


def write_manifest(directory: Path, about: Mapping[str, Any]) -> None:
    """Describes the files that a directory has; the last line vouches for the others."""
    manifest = {"files": {path.name: _described(path) for path in sorted(directory.iterdir())}, **about}
    text = as_json({**manifest, "manifest": digest(manifest)})
    (directory / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """What a directory's files must be like."""
    try:
        text = read_json_text(directory / MANIFEST)
        manifest = json.loads(text)
        # To the last byte: damage where nobody looks is a warning about the rest.
        if manifest.keys() != _OLDER_MANIFEST and (
            as_json(manifest) != text or manifest.pop("manifest") != digest(manifest)
        ):
            raise ValueError("not what was written")
        return {str(name): dict(one) for name, one in manifest["files"].items()}
    except PermissionError as error:
        raise StorageError(f"cannot read {directory / MANIFEST}: {error.strerror}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{directory} is damaged: its {MANIFEST} cannot be read") from error


def verified(directory: Path, name: str, expected: Mapping[str, Mapping[str, Any]]) -> Path:
    """The path of a file that is what the manifest says."""
    path = directory / name
    try:
        # A link could lead outside. The size first: it bounds what is read.
        whole = path.parent == directory and not path.is_symlink() and path.is_file()
        sound = whole and path.stat().st_size == expected.get(name, {}).get("bytes")
        sound = sound and _described(path) == expected.get(name)
    except PermissionError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    if not sound:
        raise CheckpointError(f"{path} is damaged: it is not what was saved")
    return path


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def digest(value: Any) -> str:
    return hashlib.sha256(as_json(value).encode()).hexdigest()


def read_json_text(path: Path) -> str:
    """A file of JSON, and no link, that is no larger than one can be."""
    if path.is_symlink():
        raise ValueError("it is a link")
    return read_regular(path, _LARGEST_JSON).decode()


def _described(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_digest(path)}
