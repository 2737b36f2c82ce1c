"""`fetch`: from the name of a corpus to prepared data; what is there already is left as it is.

corpora/downloads/          archives as they came, with their checksums: what a mirror serves
corpora/NAME/text/          plain parallel files, as `qkv prepare` takes them, and what is known of each
corpora/NAME/data/          the same, prepared
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.config import Config
from qkv.errors import ConfigError, DownloadError, TextError
from qkv.fetch.archives import Member, members
from qkv.fetch.checksums import Ledger
from qkv.fetch.corpora import Corpus, Download, Side, Text, corpus
from qkv.fetch.download import download, forget
from qkv.fetch.forms import FORMS
from qkv.progress import Progress
from qkv.storage import explained, file_digest, replacing, require_room, require_utf8, write_atomically

if TYPE_CHECKING:
    from qkv.prepare import Prepared

MIRROR = "QKV_MIRROR"
"""The variable that names a mirror where the call does not."""
_ABOUT = "fetched.json"
_NOTED = {"bytes": int, "lines": int, "names": str}
"""What is noted of each file there, beside its sha256, which an older version did not note."""


@dataclass(frozen=True)
class Fetched:
    """The parallel files of a corpus: source and target in turn, as `prepare` takes them."""

    name: str
    directory: Path

    @property
    def corpus(self) -> Corpus:
        return corpus(self.name)

    @property
    def training(self) -> list[Path]:
        return self._files(self.corpus.training)

    @property
    def valid(self) -> list[Path]:
        return self._files(self.corpus.valid)

    @property
    def test(self) -> list[Path]:
        return self._files(self.corpus.test)

    @property
    def data(self) -> Path:
        """Where the prepared data is, or would be."""
        return self.directory / "data"

    def prepare(self, config: Config | None = None, *, workers: int | None = None) -> Prepared:
        """Prepares it as the paper did, or with these settings of text and data."""
        # Here, so that the table of corpora is read without numpy.
        from qkv.prepare import prepare

        return prepare(
            self.training,
            self.data,
            config or self.corpus.config(),
            valid=self.valid,
            test=self.test,
            workers=workers,
        )

    def _files(self, texts: Sequence[Text]) -> list[Path]:
        found = self.corpus
        place = self.directory / "text"
        return [place / f"{text.name}.{language}" for text in texts for language in (found.source, found.target)]


def fetch(
    name: str,
    output: str | os.PathLike[str] = "corpora",
    *,
    mirror: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Fetched:
    """Downloads a corpus and writes its parallel text; a second call does nothing, and one after a crash goes on."""
    found = corpus(name)
    output = Path(output)
    require_utf8([output])
    fetched = Fetched(name, output / name)
    place = fetched.directory / "text"
    mirror = _mirror(mirror or os.environ.get(MIRROR))
    with explained(fetched.directory):
        place.mkdir(parents=True, exist_ok=True)
    with _alone(output):
        written = _Written(place)
        for one, sides in found.downloads().items():
            wanted = [(_file_name(text, language), text, side) for text, side, language in sides]
            missing = [row for row in wanted if not written.reads_as_noted(row[0])]
            if missing:
                archive, url = _obtain(one, output / "downloads", mirror, say)
                _extract(archive, missing, written)
                told = Ledger(archive.parent).note(one, archive, url)
                if told is not None:
                    say(f"{one.name}: {told}")
        for text in found.texts():
            written.require_parallel(text, found)
    return fetched


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Inside, no other process fetches to the same place: corpora share downloads, and two would write to one file."""
    from qkv.prepare.directory import held

    with ExitStack() as holding:
        try:
            holding.enter_context(held(output / "downloads"))
        except ConfigError as error:
            raise ConfigError(
                f"another process is fetching into {output} right now, and corpora share their downloads; wait for it"
            ) from error
        yield


def _obtain(one: Download, place: Path, mirror: str | None, say: Callable[[str], None]) -> tuple[Path, str | None]:
    """The file, brought here where it is not yet, and checked; and where it came from, None where it was here."""
    path, ledger = place / one.name, Ledger(place)
    url = one.url if mirror is None else f"{mirror}/{one.name}"
    found_here = path.is_file()
    appended = not found_here and download(url, path, one.most_bytes)
    try:
        told = ledger.check(one, path)
    except DownloadError as error:
        if found_here:
            raise DownloadError(f"{error}; remove it and give the same command again") from error
        forget(path)
        if not appended:
            raise DownloadError(f"{error}; it is removed. Try again later, or another --from") from error
        # What it was appended to may have been of another file: once more, from the beginning.
        return _obtain(one, place, mirror, say)
    say(f"{one.name}: {'here already' if found_here else f'from {url}'}; {told}")
    return path, None if found_here else url


def _extract(archive: Path, missing: Sequence[tuple[str, Text, Side]], written: _Written) -> None:
    wanted = {side.member or archive.name: (name, text.form) for name, text, side in missing}
    for member in members(archive, wanted):
        name, form = wanted[member.name]
        try:
            written.write(name, form, member)
        except TextError as error:
            raise TextError(f"{member.name} of {archive}: {error}") from error


class _Written:
    """The files of text that are there and whole, with what is known of each."""

    def __init__(self, place: Path) -> None:
        self._place = place
        try:
            rows = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            rows = {}
        # What is not noted, or not so that it can be read, is written again, which costs minutes.
        self._rows: dict[str, Mapping[str, Any]] = {
            name: row for name, row in (rows.items() if isinstance(rows, dict) else ()) if _is_whole(row)
        }

    def reads_as_noted(self, name: str) -> bool:
        """Whether a file is there and has the bytes that were noted, for which all of it is read."""
        path, row = self._place / name, self._rows.get(name, {})
        if not path.is_file() or path.stat().st_size != row.get("bytes"):
            return False
        return "sha256" not in row or file_digest(path) == row["sha256"]

    def write(self, name: str, form: str, member: Member) -> None:
        """Writes one side, a line of text a line; it appears when it is whole."""
        path, whole, names, lines = self._place / name, hashlib.sha256(), hashlib.sha256(), 0
        with explained(path, member.size):
            require_room(path, member.size)
            with replacing(path) as file, Progress(f"reading {name}", total=None, unit="lines") as progress:
                for line in FORMS[form](member.stream):
                    file.buffer.write(line.text + b"\n")
                    whole.update(line.text + b"\n")
                    names.update(line.name.encode() + b"\n")
                    lines += 1
                    progress.advance(1)
        described = {"bytes": path.stat().st_size, "sha256": whole.hexdigest()}
        self._rows[name] = {**described, "lines": lines, "names": names.hexdigest()}
        write_atomically(self._place / _ABOUT, (json.dumps(self._rows, indent=2, sort_keys=True) + "\n").encode())

    def require_parallel(self, text: Text, found: Corpus) -> None:
        source, target = (self._rows[_file_name(text, language)] for language in (found.source, found.target))
        if not source["lines"]:
            raise TextError(f"{self._place / text.name}.{found.source} is empty: its archive is not laid out as it was")
        if (source["lines"], source["names"]) != (target["lines"], target["names"]):
            raise TextError(
                f"{self._place / text.name}: {source['lines']:,} lines of {found.source} and {target['lines']:,} of "
                f"{found.target} are not those of one another; remove {self._place} and its archives and fetch again"
            )


def _is_whole(row: Any) -> bool:
    return isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in _NOTED.items())


def _file_name(text: Text, language: str) -> str:
    return f"{text.name}.{language}"


def _mirror(url: str | None) -> str | None:
    if not url:
        return None
    try:
        sound = urllib.parse.urlsplit(url).scheme in ("http", "https")
    except ValueError:
        sound = False
    if not sound:
        raise ConfigError(f"a mirror is named by a URL such as https://example.org/corpora, not {url!r}")
    return url.rstrip("/")
