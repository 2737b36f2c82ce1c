"""A directory that was changed on purpose, and whose manifest vouches for it all the same."""

from __future__ import annotations

from pathlib import Path

from qkv.manifest import MANIFEST, write_manifest


def vouched_for(directory: Path) -> None:
    """Makes the manifest agree with what was changed, as somebody would who means harm."""
    (directory / MANIFEST).unlink()
    write_manifest(directory, {})
