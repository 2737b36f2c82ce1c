"""Prepared data as a parcel: pairs travel once, and are laid out in their directions where they are learned from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qkv.data.corpus import Corpus, CorpusWriter, Sentences
from qkv.data.mixing import write_base, write_mixed
from qkv.errors import ConfigError
from qkv.parcel.parts import Member, Parcel, consistent, file_pieces, write_parcel
from qkv.prepare import Prepared
from qkv.prepare.directory import DROPPED, MANIFEST, MENDED, write_json
from qkv.storage import replacing_directory

KIND = "data"

_ARRAYS = ("source.ids", "target.ids", "source.lengths", "target.lengths", "lines")
_AT_ONCE = 1 << 20


def pack_data(data: Path, output: Path, *, part_bytes: int) -> int:
    """Writes data that `qkv prepare` made as a parcel; tells how many parts it has."""
    prepared = Prepared.open(data)
    prepared.verify()
    return write_parcel(output, KIND, lambda folder: _members(prepared, folder), _about(prepared), part_bytes)


def unpack_data(parcel: Path, output: Path) -> Prepared:
    """Makes prepared data of a parcel, with nothing missing but what the cleaning left out and mended."""
    opened = Parcel(parcel)
    if output.exists():
        raise ConfigError(f"{output} is there already; choose another directory, or remove it")
    with replacing_directory(output, None) as place, consistent(parcel):
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, _, pieces in opened.members():
            content = b"".join(pieces)
            if name in _ARRAYS:
                arrays[name] = np.frombuffer(content, opened.about["dtypes"][name])
            else:
                (place / name).write_bytes(content)
        vocabulary = opened.about["vocabulary"]
        stretches = opened.about["stretches"]
        with tempfile.TemporaryDirectory(prefix=".base-", dir=place) as folder:
            # What has no stretches is its own base.
            first = Path(folder) if stretches else place
            with CorpusWriter(first, "train", vocabulary=vocabulary) as writer:
                _extend(writer, arrays)
            if stretches:
                mixed = Corpus.stretches_of(place, "train")
                with CorpusWriter(place, "train", vocabulary=vocabulary) as writer:
                    write_mixed(Corpus.open(first, "train"), mixed, writer)
        write_json(place / MANIFEST, opened.about["manifest"])
        Prepared.open(place).verify()
    return Prepared.open(output)


def _about(prepared: Prepared) -> dict[str, Any]:
    files = {name: one for name, one in prepared.manifest["files"].items() if name not in (DROPPED, MENDED)}
    corpus = prepared.corpus("train")
    ids, numbers = corpus.source_ids.dtype.str, np.dtype("<i8").str
    return {
        "manifest": {**prepared.manifest, "files": files},
        "vocabulary": prepared.tokenizer().size,
        "stretches": len(corpus.stretches),
        "dtypes": {name: ids if name.endswith("ids") else numbers for name in _ARRAYS},
    }


def _members(prepared: Prepared, folder: Path) -> Iterator[Member]:
    travelling = [name for name in _about(prepared)["manifest"]["files"] if not name.startswith("train.")]
    for name in [*travelling, "train.json"]:
        yield Member(name, "text", file_pieces(prepared.directory / name))
    corpus = prepared.corpus("train")
    if corpus.stretches:
        with CorpusWriter(folder, "base", vocabulary=prepared.tokenizer().size) as writer:
            write_base(corpus, writer)
        corpus = Corpus.open(folder, "base")
    lines = np.diff(corpus.lines, prepend=np.int64(0))
    arrays = corpus.source_ids, corpus.target_ids, corpus.source_lengths(), corpus.target_lengths(), lines
    for name, array in zip(_ARRAYS, arrays, strict=True):
        yield Member(
            name, "text", (array[first : first + _AT_ONCE].tobytes() for first in range(0, len(array), _AT_ONCE))
        )


def _extend(writer: CorpusWriter, arrays: dict[str, npt.NDArray[Any]]) -> None:
    if not len(arrays["source.lengths"]) == len(arrays["target.lengths"]) == len(arrays["lines"]):
        raise ValueError("not as many sources as targets")
    writer.extend(
        Sentences(arrays["source.ids"], arrays["source.lengths"]),
        Sentences(arrays["target.ids"], arrays["target.lengths"]),
        np.cumsum(arrays["lines"]),
    )
