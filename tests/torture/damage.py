"""Fault 3 and 4: checkpoints with flipped bytes, and with files that are truncated, gone, swapped or another run's."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from qkv.checkpoint import step_of
from qkv.config import Config
from qkv.errors import QkvError
from qkv.prepare import prepare
from qkv.run import RunDirectory
from qkv.training import train_prepared
from tests import toy
from tests.torture.trials import CONFIG, Tally


def _newest_found(run: Path) -> tuple[int, str]:
    """The step that training would go on from, and what is said about the others."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        saved = RunDirectory(run).newest_sound_checkpoint()
    return (0 if saved is None else int(saved.state["step"])), said.getvalue()


def flipped_bytes(folder: Path, data: Path, count: int, seed: int = 1) -> Tally:
    """Changes one random byte of a random file of the newest checkpoint: found, named, and the one before is used."""
    tally = Tally("one byte changed at a random place of a random file: found, named, the checkpoint before used")
    run = folder / "run"
    train_prepared(data, run, CONFIG)
    *_, before, newest = RunDirectory(run).checkpoints()
    files = sorted(newest.iterdir())
    generator = random.Random(seed)
    for _ in range(count):
        path = generator.choice(files)
        sound = path.read_bytes()
        place = generator.randrange(len(sound))
        changed = sound[place] ^ generator.randrange(1, 256)
        path.write_bytes(sound[:place] + bytes([changed]) + sound[place + 1 :])
        found, said = _newest_found(run)
        named = newest.name in said and path.name in said
        tally.count(found == step_of(before) and named, f"{path.name}, byte {place} to {changed}: step {found}; {said}")
        path.write_bytes(sound)
    assert _newest_found(run) == (step_of(newest), "")
    tally.notes = {"files": len(files)}
    return tally


def damaged_files(folder: Path, data: Path) -> Tally:
    """Truncates, removes, lengthens and swaps every file of the newest checkpoint."""
    tally = Tally("a file truncated, lengthened, removed, swapped with another or an older one: likewise")
    run = folder / "run"
    train_prepared(data, run, CONFIG)
    *_, before, newest = RunDirectory(run).checkpoints()
    names = sorted(path.name for path in newest.iterdir())
    kept = folder / "kept"
    shutil.copytree(newest, kept)

    def judge(what: str, damage: Callable[[], object]) -> None:
        damage()
        found, said = _newest_found(run)
        tally.count(found == step_of(before) and newest.name in said, f"{what}: step {found}; {said}")
        shutil.rmtree(newest)
        shutil.copytree(kept, newest)

    for name in names:
        path, content = newest / name, (newest / name).read_bytes()
        for length in (0, 1, 7, 8, len(content) // 2, len(content) - 1):
            judge(f"{name} cut to {length} bytes", lambda: path.write_bytes(content[:length]))  # noqa: B023
        judge(f"{name} lengthened", lambda: path.write_bytes(content + b"\0"))  # noqa: B023
        judge(f"{name} removed", path.unlink)
        if content != (before / name).read_bytes():
            judge(f"{name} of an older checkpoint", lambda: shutil.copy(before / name, path))  # noqa: B023
    for one, other in itertools.combinations(names, 2):

        def swap() -> None:
            (newest / one).rename(newest / "aside")  # noqa: B023
            (newest / other).rename(newest / one)  # noqa: B023
            (newest / "aside").rename(newest / other)  # noqa: B023

        judge(f"{one} and {other} swapped", swap)

    def put_older() -> None:
        shutil.rmtree(newest)
        shutil.copytree(before, newest)

    judge("an older checkpoint under this name", put_older)
    return tally


def strangers(folder: Path, data: Path) -> Tally:
    """Checkpoints of runs with other settings, other data or another tokenizer: refused, with the reason."""
    tally = Tally("a checkpoint of a run with other settings, data or tokenizer: refused with the reason")
    run = folder / "run"
    short = CONFIG.with_changes(training={"steps": 6})
    train_prepared(data, run, short)
    corpus = toy.write_tsv(folder / "other.tsv", toy.pairs(130))
    other_data = prepare([corpus], folder / "data", short, tokenizer=run / "tokenizer.model").directory
    other_text = prepare([corpus], folder / "text", short).directory
    others: dict[str, tuple[Path, Config]] = {
        "training.seed": (data, short.with_changes(training={"seed": 9})),
        "training.optimizer": (data, short.with_changes(training={"optimizer": "adamw"})),
        "training.label_smoothing": (data, short.with_changes(training={"label_smoothing": 0.3})),
        "model.heads": (data, short.with_changes(model={"heads": 4})),
        "model.width": (data, short.with_changes(model={"width": 24})),
        "other data": (other_data, short),
        "data": (other_text, short),
    }
    for told, (its_data, config) in others.items():
        other, mixed = folder / told / "other", folder / told / "mixed"
        train_prepared(its_data, other, config)
        shutil.copytree(run, mixed)
        newest = RunDirectory(mixed).checkpoints()[-1]
        shutil.rmtree(newest)
        shutil.copytree(other / "checkpoints" / newest.name, newest)
        try:
            train_prepared(data, mixed, short.with_changes(training={"steps": 9}))
            tally.count(False, f"{told}: trained")
        except QkvError as error:
            tally.count(told in str(error) and newest.name in str(error), f"{told}: {error}")
    return tally
