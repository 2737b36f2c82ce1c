"""What is to be scored: translations from files, or made by run directories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qkv.errors import ConfigError, TextError
from qkv.progress import Progress
from qkv.text.files import read_lines

if TYPE_CHECKING:
    from qkv.translate import Precision


def read_test(test: Path | None, source: Path | None, reference: Path | None) -> tuple[list[str] | None, list[str]]:
    """The sources, where there are any, and the references: from a file of pairs or from one file each."""
    if test is not None and (source is not None or reference is not None):
        raise ConfigError("--test holds source and reference already; leave out --source and --reference")
    if test is not None:
        return read_pairs(test)
    if reference is None:
        raise ConfigError("evaluate needs --reference, or --test with pairs")
    sources, references = list(read_lines(source)) if source is not None else None, list(read_lines(reference))
    if sources is not None and len(sources) != len(references):
        raise TextError(f"there are {len(sources):,} sources but {len(references):,} references; they must pair up")
    return sources, references


def read_pairs(test: Path) -> tuple[list[str], list[str]]:
    """The two columns of a test set."""
    pairs = [line.split("\t") for line in read_lines(test)]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) < 2:
            raise TextError(f"{test}, line {number}: no tab between a source and its reference")
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def read_systems(
    paths: Sequence[Path],
    sources: list[str] | None,
    *,
    beam: int | None,
    length_penalty: float | None,
    device: str,
    precision: Precision,
    domain: str | None = None,
) -> tuple[dict[str, list[str]], str | None]:
    """Each system's translations by its name, and the target language if a run knows it."""
    for path in paths:
        if paths.count(path) > 1:
            raise ConfigError(f"{path} is given twice")
        if path.is_dir() and sources is None:
            raise ConfigError(f"{path} is a run directory: give --source or --test for it to translate")
    # Files first: one that cannot be read is found before a run has translated for an hour.
    systems = {str(path): [] if path.is_dir() else list(read_lines(path)) for path in paths}
    language = None
    for path in paths:
        if sources is None or not path.is_dir():
            continue
        # Scoring files needs no torch, so it is not imported for that.
        from qkv.translate import Translator
        from qkv.translate.directions import SeveralDirectionsError

        translator = Translator.load(path, device=device, precision=precision)
        try:
            if domain is not None or len(translator.directions) > 1:
                translator = translator.between(translator.source_language, translator.target_language, domain=domain)
        except SeveralDirectionsError as error:
            raise ConfigError(f"{path}: {error.what}; give --tests, which scores in each of them") from error
        language = language or translator.target_language
        with Progress(f"translating with {path}", total=len(sources), unit="lines") as progress:
            translations = translator.translate(
                sources, beam=beam, length_penalty=length_penalty, progress=progress.advance
            )
        systems[str(path)] = [one.text for one in translations]
    return systems, language
