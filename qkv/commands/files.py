"""Files and folders, translated as they are: `qkv translate run/ --file site/ --to fr`."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qkv.directories import CONFIG, LOG, TOKENIZER
from qkv.errors import ConfigError, FullDiskError, QkvError, TextError
from qkv.files import MOST_BYTES, kind_of, kinds, require_kind, translate_file
from qkv.progress import Progress, tell, warn
from qkv.storage import explained, read_regular, write_atomically

if TYPE_CHECKING:
    from qkv.translate import Relay, Terms, Translator

_QUOTED = 40
_PARTS_OF_MODELS = (TOKENIZER, "*.onnx", "*.safetensors", LOG)
"""What lies in runs and exported models, and hardly ever among texts."""


class _Work(NamedTuple):
    source: Path
    target: Path

    @property
    def is_done(self) -> bool:
        """Whether it was translated since it last changed; a file is there only when it is whole."""
        return self.target.exists() and self.target.stat().st_mtime_ns >= self.source.stat().st_mtime_ns


def extensions() -> list[str]:
    """Of all files that can be translated."""
    return [extension for kind in kinds() for extension in kind.extensions]


def models_and_files(paths: Sequence[Path]) -> tuple[list[Path], list[Path] | None]:
    """Which of the names that were given are models, and which are files or folders to translate."""
    files = [path for path in paths if path.exists() and not (path / CONFIG).exists()]
    models = [path for path in paths if path not in files]
    for path in files:
        # Whoever names a model that is not whole, or a folder of models, wants no copy of it.
        part = next((part for name in _PARTS_OF_MODELS for at in ("", "*/") for part in path.glob(at + name)), None)
        if part is not None:
            raise ConfigError(
                f"{path} is no model, having no {CONFIG}, and yet has {part.relative_to(path)}; name a whole "
                f"model, look for models in it with --model {path}, or translate the files in it with --file {path}"
            )
    return models, files or None


def require_files(paths: Sequence[Path]) -> None:
    """Refuses what cannot be translated before anything is loaded."""
    for path in paths:
        if not path.exists():
            raise ConfigError(f"there is no file or folder {path}; --file takes the names of some")
        if not path.is_dir():
            require_kind(path.name)
        elif not any(kind_of(file.name) for file in _files_in(path, besides=None)):
            raise ConfigError(
                f"{path} has no file that can be translated; there are {', '.join(extensions())} (and what is a model "
                f"has a {CONFIG})"
            )


def translate_files(
    translator: Translator | Relay,
    options: argparse.Namespace,
    how: dict[str, Any],
    terms: Callable[[str], Terms] | None,
) -> None:
    """Translates every file; one that cannot be is told of at the end, and stops no others."""
    target = _target(translator, options)
    works = [*_works(options, target)]
    waiting = [work for work in works if options.again or not work.is_done]
    if len(waiting) < len(works):
        tell(f"qkv: {len(works) - len(waiting):,} of {len(works):,} files are there already; --again makes them anew")
    failures = []
    with Progress("translating", total=len(waiting), unit="files") as progress:
        for work in waiting:
            translate = _translation(translator, how, terms, progress, work.source)
            try:
                _do(work, partial(translate_file, translate=translate, **_languages(options, target)))
            except FullDiskError:
                raise
            except QkvError as error:
                failures.append(str(error))
            progress.advance(1)
    if done := len(waiting) - len(failures):
        first, *others = (_output(path, options, target) for path in options.file)
        more = f" and {len(others):,} more" if others else ""
        tell(f"qkv: {done:,} {'files' if done > 1 else 'file'} translated, to {first}{more}")
    if failures:
        for failure in failures:
            tell(f"qkv: {failure}")
        raise TextError(
            f"{len(failures):,} of {len(works):,} files could not be translated (see above); mend them and give "
            "the same command again"
        )


def _languages(options: argparse.Namespace, target: str | None) -> dict[str, Any]:
    return {"source": options.source_language, "target": target, "again": options.again}


def _target(translator: Translator | Relay, options: argparse.Namespace) -> str | None:
    """The language that is translated to, if anybody says it."""
    target: str | None = options.target_language or translator.target_language
    if target is None and options.output is None:
        raise ConfigError("nothing says which language this model translates to; add --to, such as --to fr")
    return target


def _works(options: argparse.Namespace, target: str | None) -> Iterator[_Work]:
    """What is to be done; other files of a folder are copied beside."""
    if options.output is not None and len(options.file) > 1:
        raise ConfigError(f"--output is one name, and there are {len(options.file)} to translate; leave it out")
    for path in options.file:
        output = _output(path, options, target)
        if output.exists() and output.samefile(path):
            raise ConfigError(f"--file and --output are both {path}, which would be lost")
        if path.is_dir():
            yield from _in_folder(path.resolve(), output)
        else:
            yield _Work(path, output)


def _output(path: Path, options: argparse.Namespace, target: str | None) -> Path:
    """What a file or folder is translated to: beside it, unless another place was named."""
    if options.output is not None:
        return Path(options.output)
    # Of a folder such as `.` the name shows only there.
    path = path.resolve() if path.is_dir() else path
    return path.with_name(f"{path.name}.{target}" if path.is_dir() else f"{path.stem}.{target}{path.suffix}")


def _in_folder(folder: Path, output: Path) -> Iterator[_Work]:
    for file in _files_in(folder, besides=output.resolve()):
        work = _Work(file, output / file.relative_to(folder))
        if kind_of(file.name) is not None:
            yield work
        elif not work.is_done:
            with explained(work.target, file.stat().st_size):
                work.target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, work.target)


def _files_in(folder: Path, *, besides: Path | None) -> Iterator[Path]:
    """In order; hidden folders are nobody's text, and a link may lead anywhere."""
    for where, names, files in os.walk(folder):
        here = Path(where)
        names[:] = sorted(
            name
            for name in names
            if not name.startswith(".") and not (here / name).is_symlink() and (here / name) != besides
        )
        for file in (here / name for name in sorted(files) if not name.startswith(".")):
            if file.is_file() and not file.is_symlink():
                yield file


def _do(work: _Work, translate: Callable[[bytes, str], bytes]) -> None:
    try:
        data = read_regular(work.source, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise TextError(f"{work.source} cannot be read: {error}") from error
    content = translate(data, str(work.source))
    with explained(work.target, len(content)):
        work.target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(work.target, content)


def _translation(
    translator: Translator | Relay,
    how: dict[str, Any],
    terms: Callable[[str], Terms] | None,
    progress: Progress,
    source: Path,
) -> Callable[[list[str]], list[str]]:
    from qkv.translate import translate_documents

    done = 0

    def show(more: int) -> None:
        nonlocal done
        done += more
        progress.advance(0, f"{source.name}: {done:,} sentences")

    def translate(texts: list[str]) -> list[str]:
        documents = translate_documents(
            translator,
            texts,
            markup="marks",
            terms=terms,
            progress=show,
            **how,
        )
        for sentence in (sentence for document in documents for sentence in document.cut_off):
            warn(f"{source}: a sentence was cut off by the length limit: {sentence[:_QUOTED]!r}…")
        return [document.text for document in documents]

    return translate
