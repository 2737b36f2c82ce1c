"""A run as a parcel: all of it, what training needs to go on, or what translating needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, get_args

import torch

from qkv.checkpoint import Saved, read, step_of, write
from qkv.errors import CheckpointError, ConfigError
from qkv.parcel.parts import Member, Parcel, file_pieces, write_parcel
from qkv.progress import warn
from qkv.run import RunDirectory
from qkv.storage import replacing_directory

KIND = "run"

What = Literal["all", "newest", "weights"]
Precision = Literal["float32", "bfloat16"]


def pack_run(run: Path, output: Path, *, part_bytes: int, what: What, precision: Precision) -> int:
    """Writes a run as a parcel; tells how many parts it has.

    With all checkpoints; with the newest one and the final weights, if there are any, which is enough to go on; or with
    the weights alone. In bfloat16 it is half as large, and rounded.
    """
    for given, known in ((what, What), (precision, Precision)):
        if given not in get_args(known):
            raise ConfigError(f"{given!r} is none of {', '.join(get_args(known))}")
    opened = RunDirectory.open(run)
    return write_parcel(output, KIND, lambda folder: _members(opened, what, precision, folder), {}, part_bytes)


def unpack_run(parcel: Path, output: Path) -> None:
    """Makes a run directory of a parcel."""
    opened = Parcel(parcel)
    if output.exists():
        raise ConfigError(f"{output} is there already; choose another directory, or remove it")
    with replacing_directory(output, None) as place:
        for name, _, pieces in opened.members():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
        run = RunDirectory(place)
        if not run.config_file.is_file() or not run.learned:
            raise CheckpointError(f"{parcel} is damaged: what is in it is no run; pack it again")
        for directory in (*run.checkpoints(), *filter(Path.is_dir, (run.final, run.start))):
            saved = read(directory)
            if any(tensor.dtype == torch.bfloat16 for some in saved.tensors.values() for tensor in some.values()):
                _write_as(saved, torch.float32, directory)


def _members(run: RunDirectory, what: What, precision: Precision, folder: Path) -> Iterator[Member]:
    for path in (run.config_file, run.tokenizer_file, run.log):
        if path.is_file():
            yield Member(path.name, "text", file_pieces(path))
    for name, directory in _directories(run, what, folder):
        source = directory
        if precision == "bfloat16":
            source = folder / "rounded"
            _write_as(read(directory), torch.bfloat16, source)
        for path in sorted(source.iterdir()):
            codec = precision if path.suffix == ".safetensors" else "text"
            yield Member(f"{name}/{path.name}", codec, file_pieces(path))


def _directories(run: RunDirectory, what: What, folder: Path) -> Iterator[tuple[str, Path]]:
    """What is in a run by this name, and where it can be read."""
    if what == "weights":
        saved = run.weights()
        write(folder / "weights", {"weights": saved.tensors["weights"]}, saved.state)
        yield "final", folder / "weights"
        return
    # What is damaged would be found out only where it arrives, and nothing of the rest could be used there.
    newest = _newest(run)
    older = [one for one in run.checkpoints() if what == "all" and newest and step_of(one) < step_of(newest)]
    checkpoints = [*_sound(older), *([newest] if newest else [])]
    final = list(_sound([run.final] if run.final.is_dir() else []))
    if not checkpoints and not final:
        raise CheckpointError(f"{run.path} has no weights that could be packed; train it first")
    yield from ((f"checkpoints/{checkpoint.name}", checkpoint) for checkpoint in checkpoints)
    yield from (("final", directory) for directory in final)
    yield from (("start", directory) for directory in _sound([run.start] if run.start.is_dir() else []))


def _newest(run: RunDirectory) -> Path | None:
    saved = run.newest_sound_checkpoint()
    return None if saved is None else saved.directory


def _sound(directories: Iterable[Path]) -> Iterator[Path]:
    """Those of which every file is what was saved; the others are named."""
    for directory in directories:
        try:
            read(directory)
        except CheckpointError as error:
            warn(f"{error}; it is left out")
        else:
            yield directory


def _write_as(saved: Saved, dtype: torch.dtype, directory: Path) -> None:
    """The same checkpoint in other numbers; those that count something stay as they are."""
    tensors = {
        group: {
            name: tensor.to(dtype) if tensor.dim() and tensor.is_floating_point() else tensor
            for name, tensor in some.items()
        }
        for group, some in saved.tensors.items()
    }
    write(directory, tensors, saved.state)
