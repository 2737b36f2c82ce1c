"""The directory of prepared data: made beside its place, moved there when it is whole, described by a manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy
import sentencepiece

import qkv
from qkv.config import Config
from qkv.data.corpus import Corpus
from qkv.directories import TOKENIZER
from qkv.errors import ConfigError, FullDiskError, StorageError, TextError
from qkv.prepare.mix import Mix
from qkv.prepare.report import Places, summarise
from qkv.storage import append_regular, claim, explained, file_digest, is_claimed, read_regular, readable_size, sync
from qkv.text.subwords import Tokenizer

MANIFEST = "prepared.json"
REPORT = "report.json"
DROPPED = "dropped.tsv.gz"
MENDED = "mended.tsv.gz"
WORK = "work"

_FORMAT = 1
_LARGEST_JSON = 1 << 26
"""Bytes: what is said of each file of a corpus is far less, and what fills memory far more."""
# Text that was compressed is taken to be this many times as long; while preparing, text is kept once beside its ids.
_COMPRESSED = 3
_SPACE = 2.0


@dataclass(frozen=True)
class Prepared:
    """Prepared data, ready to train on: `Prepared.open(directory).corpus("train")`."""

    directory: Path
    manifest: Mapping[str, Any]
    report: Mapping[str, Any]
    reused: bool = False

    @classmethod
    def open(cls, directory: Path) -> Prepared:
        """What `prepare` wrote there, its files checked for their sizes."""
        manifest = _read_json(directory / MANIFEST)
        try:
            sizes = {name: int(described["bytes"]) for name, described in manifest["files"].items()}
            str(manifest["fingerprint"]), dict(manifest["settings"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TextError(f"{directory / MANIFEST} is damaged; remove {directory} and prepare again") from error
        for name, expected in sizes.items():
            path = directory / name
            found = path.stat().st_size if path.is_file() else None
            if found != expected:
                how = "is missing" if found is None else f"is damaged: {found:,} bytes, not {expected:,}"
                raise TextError(f"{path} {how}; remove {directory} and prepare again")
        return cls(directory, manifest, _read_json(directory / REPORT))

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])

    def corpus(self, name: str) -> Corpus:
        """The ids of `train` or `valid`."""
        return Corpus.open(self.directory, name)

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.directory / TOKENIZER)

    @property
    def valid_files(self) -> tuple[Path, Path]:
        """The text of the held-out pairs line by line, sources and targets."""
        return text_files(self.directory, "valid")

    def applied_to(self, config: Config) -> Config:
        """The config with the text and data settings that this data was prepared with."""
        prepared = self.manifest["settings"]
        try:
            return config.with_changes(text=prepared["text"], data=prepared["data"])
        except TypeError as error:
            raise TextError(
                f"{self.directory} was prepared by another version of qkv, with settings that this one does not know; "
                "use that version, or prepare again"
            ) from error

    def places(self, lines: Sequence[int]) -> list[str]:
        """Where lines of the training corpus stand, `file:line`, as the user knows them; pairs by their source."""
        if "places" not in self.manifest:
            # An older version did not keep them, and its data is as good to train on.
            return [f"line {line} of all training files together" for line in lines]
        places = Places.from_json(self.manifest["places"])
        return [str(places.find(line)) for line in lines]

    def verify(self) -> None:
        """Reads every file and compares it with the manifest."""
        for name, described in self.manifest["files"].items():
            if file_digest(self.directory / name) != described["sha256"]:
                path = self.directory / name
                raise TextError(f"{path} is not what was written; remove {self.directory} and prepare again")

    def summary(self) -> str:
        """What was kept, left out and mended, for a person."""
        again = f"{self.directory} holds this already; used as it is\n" if self.reused else ""
        return again + summarise(self.report, dropped=self.directory / DROPPED, mended=self.directory / MENDED)


@dataclass(frozen=True)
class Request:
    """What is asked for: equal requests give equal directories."""

    settings: Mapping[str, Any]
    inputs: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def of(cls, config: Config, roles: Mapping[str, Sequence[Path]], mix: Mix | None = None) -> Request:
        settings: dict[str, Any] = {"text": dataclasses.asdict(config.text), "data": dataclasses.asdict(config.data)}
        if mix is not None:
            roles = {**roles, "training": mix.files}
            settings |= {} if mix.is_plain else {"mix": {"rows": mix.described()}}
        return cls(
            {**settings, "training": {"seed": config.training.seed}},
            {
                role: [{"file": str(path), "bytes": path.stat().st_size, "sha256": file_digest(path)} for path in paths]
                for role, paths in roles.items()
            },
        )

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Request:
        """What was asked for then; a setting that is younger than the data has its default."""
        defaults = cls.of(Config(), {}).settings
        settings = {section: {**defaults.get(section, {}), **asked} for section, asked in manifest["settings"].items()}
        return cls(settings, manifest["inputs"])

    def named_as(self, other: Request) -> Request:
        """The same, with the names that the other has for its two languages, where nobody said what they are."""
        names = ("source_language", "target_language")
        text, others = self.settings.get("text", {}), other.settings.get("text", {})
        if any(text.get(name) is not None for name in names):
            return self
        named = {**text, **{name: others[name] for name in names if name in others}}
        return dataclasses.replace(self, settings={**self.settings, "text": named} if text else self.settings)

    @property
    def fingerprint(self) -> str:
        """Of the contents of the files and the settings; where the files lie does not matter."""
        contents = {role: [file["sha256"] for file in files] for role, files in self.inputs.items()}
        asked = {"format": _FORMAT, "settings": self.settings, "contents": contents}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def existing(output: Path, request: Request) -> Prepared | None:
    """The data at `output` if it is what is asked for, None if nothing is there yet; anything else is an error."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return None
    if not (output / MANIFEST).is_file():
        raise ConfigError(f"{output} exists and is not prepared data; choose another directory or remove it")
    there = Prepared.open(output)
    before = Request.of_manifest(there.manifest).named_as(request)
    if before.fingerprint == request.fingerprint:
        return dataclasses.replace(there, reused=True)
    differences = "; ".join(_differences(before, request)) or "it was made by another version"
    raise ConfigError(
        f"{output} was prepared from something else: {differences}. Choose another directory or remove it"
    )


def require_space(output: Path, needed: int) -> None:
    """Refuses a disk that would be full before the data is prepared; the directory need not be there yet."""
    place = next(parent for parent in output.parents if parent.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise FullDiskError(
            f"preparing {output} needs about {readable_size(needed)}, and only {readable_size(free)} are free there",
            "make room and give the same command again",
        )


@contextlib.contextmanager
def held(output: Path) -> Iterator[None]:
    """Inside, no other process prepares `output`; the lock goes with the process, however that ends."""
    output.parent.mkdir(parents=True, exist_ok=True)
    path = _lock_of(output)
    try:
        while (lock := _locked(path, output)) is None:
            pass
    except BlockingIOError as error:
        raise ConfigError(f"another process is preparing {output} right now; wait for it") from error
    with lock:
        try:
            yield
        finally:
            path.unlink()


def being_prepared(output: Path) -> bool:
    """Whether a process prepares `output` right now."""
    return is_claimed(_lock_of(output))


@contextlib.contextmanager
def workplace(output: Path, needed: int) -> Iterator[Path]:
    """A directory to write into beside `output`, which must be held; it is gone afterwards unless it was published."""
    place = output.parent / f".{output.name}.partial"
    if place.exists():
        # Of a process that was killed.
        shutil.rmtree(place)
    require_space(output, needed)
    (place / WORK).mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def publish(place: Path, output: Path, request: Request, places: Places) -> None:
    """Writes the manifest, with the places of the training lines, and moves the finished directory to its place."""
    shutil.rmtree(place / WORK)
    files = {path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)} for path in sorted(place.iterdir())}
    manifest = {
        "format": _FORMAT,
        "fingerprint": request.fingerprint,
        "settings": request.settings,
        "inputs": request.inputs,
        "places": places.as_json(),
        "versions": {
            "qkv": qkv.__version__,
            "sentencepiece": sentencepiece.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
        "files": files,
    }
    write_json(place / MANIFEST, manifest)
    for path in [*place.iterdir(), place]:
        sync(path)
    # Over an empty directory this succeeds; over anything else it fails, so that nothing is lost.
    place.rename(output)
    sync(output.parent)


def text_files(directory: Path, name: str) -> tuple[Path, Path]:
    """Where the text of a corpus stands beside its ids, sources and targets."""
    return directory / f"{name}.source.txt", directory / f"{name}.target.txt"


def text_bytes(paths: Sequence[Path]) -> int:
    """About how much text the files hold."""
    return sum(path.stat().st_size * (_COMPRESSED if path.suffix in (".gz", ".xz") else 1) for path in paths)


def space_needed(paths: Sequence[Path]) -> int:
    """About how much disk preparing these files takes."""
    return int(_SPACE * text_bytes(paths))


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_regular(path, _LARGEST_JSON).decode())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(
            f"{path.parent} is not prepared data: it has no {path.name}; `qkv prepare` makes it"
        ) from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TextError(f"{path} is damaged; remove {path.parent} and prepare again") from error
    if not isinstance(content, dict) or (path.name == MANIFEST and content.get("format") != _FORMAT):
        raise TextError(f"{path} was not written by this version of qkv; remove {path.parent} and prepare again")
    return content


def _differences(before: Request, request: Request) -> Iterator[str]:
    for section, asked in request.settings.items():
        then = before.settings.get(section, {})
        for name, value in asked.items():
            if then.get(name) != value:
                yield f"{section}.{name} was {then.get(name)} and is {value}"
    for role, files in request.inputs.items():
        if [file["sha256"] for file in before.inputs.get(role, [])] != [file["sha256"] for file in files]:
            yield f"the {role} files are not the same"


def _lock_of(output: Path) -> Path:
    # Beside the directory that it guards: that one is moved while the lock is still needed.
    return output.parent / f".{output.name}.lock"


def _locked(path: Path, guarded: Path) -> FileIO | None:
    """The file, locked; None where whoever had it before removed it meanwhile, so that another may hold a new one."""
    with contextlib.ExitStack() as opened:
        # Where there is no such file yet, it is the place of what it guards that nothing can be written to.
        with explained(path if os.path.lexists(path) else guarded):
            lock = opened.enter_context(append_regular(path))
        claim(lock)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                opened.pop_all()
                return lock
    return None
