"""Fault 9: files that were made to do harm; nothing in them is executed, and memory stays bounded."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from qkv.run import RunDirectory
from qkv.training import train_prepared
from tests.forked import command, run
from tests.test_checkpoint import rewrite_manifest
from tests.torture.trials import CONFIG, Tally

_MEMORY = 300 << 20
"""Bytes that a command may take beyond what the same command takes of a sound run."""


_UNREAD = "the manifest names"
"""Begins the cases that may also be passed over: whoever translates reads the weights alone."""


class Evil:
    """What pickle would call on being read: it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self._mark}",)


def _pickled(mark: Path) -> bytes:
    return pickle.dumps(Evil(mark))


def _torch_file(mark: Path) -> bytes:
    file = io.BytesIO()
    torch.save({"a": Evil(mark)}, file)
    return file.getvalue()


def _zip_bomb(_: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights", bytes(1 << 28))
    return file.getvalue()


def _tensors(header: object, content: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + content


def _one(shape: list[int], end: int, kind: str = "F32") -> dict[str, Any]:
    return {"a": {"dtype": kind, "shape": shape, "data_offsets": [0, end]}}


_CONTENTS: dict[str, Callable[[Path], bytes]] = {
    "a pickle": _pickled,
    "torch.save": _torch_file,
    "a zip bomb": _zip_bomb,
    "gzip": lambda _: gzip.compress(bytes(1 << 26)),
    "a head of 2^60 bytes": lambda _: _tensors({}, length=1 << 60),
    "a head of 2^64 - 1 bytes": lambda _: _tensors({}, length=(1 << 64) - 1),
    "a tensor of 2^60 numbers": lambda _: _tensors(_one([1 << 60], 1 << 62)),
    "a shape that overflows": lambda _: _tensors(_one([1 << 40, 1 << 40], 4), bytes(4)),
    "offsets outside": lambda _: _tensors(_one([4], 16), bytes(4)),
    "offsets backwards": lambda _: _tensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, bytes(4)),
    "an unknown kind": lambda _: _tensors(_one([1], 8, "OBJECT"), bytes(8)),
    "deep JSON": lambda _: _tensors(b"[" * 100_000),
    "other tensors": lambda _: _tensors(_one([1], 4), bytes(4)),
    "noise": lambda _: random.Random(1).randbytes(5000),
    "nothing": lambda _: b"",
}
_NAMES = ("weights.safetensors", "state.json")


def put(directory: Path, name: str, content: bytes) -> None:
    """In the place of a file, with a manifest that says all is well."""
    (directory / name).unlink(missing_ok=True)
    (directory / name).write_bytes(content)
    described = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewrite_manifest(directory, lambda manifest: manifest["files"].update({name: described}))


def _name(directory: Path, name: str) -> None:
    """Has the manifest name a file that is elsewhere."""
    rewrite_manifest(
        directory, lambda manifest: manifest["files"].update({name: manifest["files"]["weights.safetensors"]})
    )


def _link(directory: Path, name: str, to: Path) -> None:
    (directory / name).unlink(missing_ok=True)
    (directory / name).symlink_to(to)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _cases(mark: Path) -> dict[str, Callable[[Path], object]]:
    """What is done to a run, by what it is."""
    cases: dict[str, Callable[[Path], object]] = {}

    def add(what: str, harm: Callable[[Path], object]) -> None:
        cases[what] = harm

    for what, content in _CONTENTS.items():
        for name in _NAMES:
            add(f"{name} is {what}", lambda run, n=name, c=content: put(run / "final", n, c(mark)))  # type: ignore[misc]
        for name in ("tokenizer.model", "config.json", "final/manifest.json"):
            add(f"{name} is {what}", lambda run, n=name, c=content: (run / n).write_bytes(c(mark)))  # type: ignore[misc]
    for outside in ("../../outside.safetensors", str(mark.parent / "outside.safetensors"), "..", "a/../../b"):
        add(f"{_UNREAD} {outside}", lambda run, o=outside: _name(run / "final", o))  # type: ignore[misc]
    for name in ("weights.safetensors", "state.json", "manifest.json"):
        for to in ("/etc/passwd", "/dev/zero", "/proc/self/mem", "."):
            add(f"{name} links to {to}", lambda run, n=name, t=to: _link(run / "final", n, Path(t)))  # type: ignore[misc]
    yaml = f"model: !!python/object/apply:os.system ['touch {mark}']\n"
    for name in ("config.json", "tokenizer.model", "final/manifest.json", "final/weights.safetensors"):
        add(f"{name} is a pipe", lambda run, n=name: _pipe(run / n))  # type: ignore[misc]
        add(f"{name} has 8 GB", lambda run, n=name: os.truncate(run / n, 8 << 30))  # type: ignore[misc]
    add("config.json links to /dev/zero", lambda run: _link(run, "config.json", Path("/dev/zero")))
    add("config.json is YAML that calls", lambda run: (run / "config.json").write_text(yaml))
    calls = json.dumps({"training": {"device": f"!python:__import__('os').system('touch {mark}')"}})
    add("config.json has a setting that calls", lambda run: (run / "config.json").write_text(calls))
    huge = '{"model": {"width": 1000000000000, "hidden": 1000000000000}}'
    add("config.json asks for all memory", lambda run: (run / "config.json").write_text(huge))
    add(f"{_UNREAD} a pickle as .metadata", lambda run: put(run / "final", ".metadata", _pickled(mark)))
    return cases


def hostile_files(folder: Path, data: Path, every: int = 1) -> Tally:
    """Translates with runs that hold hostile files: refused in a line, nothing executed, memory bounded."""
    tally = Tally("hostile files (pickle, zip, heads of 2^60 bytes, links, ../, tokenizers, configs): refused")
    sound, told = folder / "sound", folder / "told.txt"
    train_prepared(data, sound, CONFIG.with_changes(training={"steps": 3}))
    shutil.rmtree(RunDirectory(sound).path / "checkpoints")
    assert run(command, "translate", str(sound), told=told) == 0, told.read_text()
    usual = int(told.with_suffix(".peak").read_text())
    mark, executed, largest = folder / "mark", 0, 0
    for what, harm in [*_cases(mark).items()][::every]:
        spoilt = folder / "spoilt"
        shutil.copytree(sound, spoilt)
        harm(spoilt)
        told.write_text("")
        code = run(command, "translate", str(spoilt), told=told)
        peak = int(told.with_suffix(".peak").read_text()) - usual
        said = told.read_text()
        lines = [line for line in said.splitlines() if line.startswith("qkv: error: ")]
        refused = code in (2, 3) and len(lines) == 1 and "Traceback" not in said
        unread = what.startswith(_UNREAD) and (code, said) == (0, "")
        executed += mark.exists()
        largest = max(largest, peak)
        tally.count(
            (refused or unread) and not mark.exists() and peak < _MEMORY, f"{what}: exit {code}, {peak:,} bytes; {said}"
        )
        mark.unlink(missing_ok=True)
        shutil.rmtree(spoilt)
    tally.notes = {"executed": executed, "most memory beyond a sound run": f"{largest / 1e6:.0f} MB"}
    return tally
