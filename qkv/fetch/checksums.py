"""Whether a download is what it should be: by what others have published, else by what it was the first time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qkv.errors import DownloadError, TextError
from qkv.fetch.corpora import Download
from qkv.storage import file_digest, write_atomically

LEDGER = "checksums.json"


class Ledger:
    """The checksums of all downloads of a directory, kept beside them."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LEDGER

    def check(self, download: Download, path: Path) -> str:
        """Tells by what a file was checked; a DownloadError where it is another than it should be."""
        rows = self._rows()
        if download.checksum is not None:
            algorithm, _, published = download.checksum.partition(":")
            _require_same(path, algorithm, published, "was published")
            return f"its {algorithm} is the published one"
        if download.name in rows:
            _require_same(path, "sha256", self._sha256(rows, download), f"was noted in {self._path} the first time")
            return "its sha256 is that of the first download"
        return "no checksum is published"

    def note(self, download: Download, path: Path, url: str | None) -> str | None:
        """Writes down what a file is that has proved to be of use: a page that says "sign in" is not to be held to.

        `url` is where it came from; None where it was found here, and what is known of the same file stays. Tells of it
        where nothing else vouches for the file, and nothing did before.
        """
        rows = self._rows()
        row = {"sha256": file_digest(path), "bytes": path.stat().st_size, "url": url}
        noted = rows.get(download.name)
        first = noted is None and download.checksum is None
        if url is None and isinstance(noted, dict) and noted.get("sha256") == row["sha256"]:
            row["url"] = noted.get("url")
        if noted != row:
            rows[download.name] = row
            write_atomically(self._path, (json.dumps(rows, indent=2, sort_keys=True) + "\n").encode())
        return f"its sha256 is noted in {self._path.name}, and holds from here on" if first else None

    def _sha256(self, rows: Mapping[str, Any], download: Download) -> str:
        row = rows[download.name]
        if not isinstance(row, dict) or not isinstance(row.get("sha256"), str):
            # Not taken as missing: then whatever is there now would hold from here on.
            raise TextError(
                f"{self._path} is damaged: what it notes of {download.name} is no checksum; mend that, or remove it to "
                "note anew"
            )
        return str(row["sha256"])

    def _rows(self) -> dict[str, Any]:
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise TextError(f"{self._path} cannot be read ({error}); mend it, or remove it to note anew") from error
        if not isinstance(rows, dict):
            raise TextError(f"{self._path} is not a table of checksums; mend it, or remove it to note anew")
        return rows


def _require_same(path: Path, algorithm: str, expected: str, where: str) -> None:
    found = file_digest(path, algorithm)
    if found != expected:
        raise DownloadError(f"{path} is not what it should be: its {algorithm} is {found}, and {expected} {where}")
