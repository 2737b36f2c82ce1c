"""All fault tests in full, with a table of what held: `python -m tests.torture`, or `make torture`."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qkv.prepare import prepare
from qkv.training import train
from tests import toy
from tests.torture import damage, dirty, disk, hostile, kills, several
from tests.torture.trials import Tally


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="torture-") as name, toy.one_thread():
        folder = Path(name)
        tallies = [*_all(folder)]
    print("\n| fault | held | |\n|---|---|---|")
    for tally in tallies:
        print(tally.row() if isinstance(tally, Tally) else tally)
    failures = [failure for tally in tallies if isinstance(tally, Tally) for failure in tally.failures]
    for failure in failures:
        print(f"not held: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _all(folder: Path) -> list[Tally | str]:
    corpus = toy.write_tsv(folder / "corpus.tsv", toy.pairs(120))
    data = prepare([corpus], folder / "data", toy.QUICK).directory
    train([toy.write_tsv(folder / "language.tsv", toy.pairs(3000))], folder / "language", toy.LEARNS)
    may_mount, may_trace = disk.may_mount(folder / "mount"), shutil.which("strace") is not None
    faults: dict[str, tuple[Callable[[Path], Tally], str]] = {
        "kills": (lambda place: kills.kills_while_training(place, data, 100), ""),
        "hook": (kills.kills_inside_a_save, ""),
        "strace": (kills.kills_inside_a_save_by_strace, "" if may_trace else "there is no strace here"),
        "flips": (lambda place: damage.flipped_bytes(place, data, 1000), ""),
        "files": (lambda place: damage.damaged_files(place, data), ""),
        "strangers": (lambda place: damage.strangers(place, data), ""),
        "disk": (lambda place: disk.full_disk(place, data, 5), "" if may_mount else "only root may mount a small disk"),
        "signals": (lambda place: several.signals(place, data, 10), ""),
        "lost": (lambda place: several.lost(place, data, 20), ""),
        "processes": (lambda place: several.world_sizes(place, data, 6), ""),
        "no number": (lambda place: several.not_finite(place, data, 10), ""),
        "hostile": (lambda place: hostile.hostile_files(place, data), ""),
        "corpora": (lambda place: dirty.dirty_corpora(place, 20), ""),
        "lines": (lambda place: dirty.one_line_for_one(place, folder / "language", 20), ""),
    }
    tallies: list[Tally | str] = []
    for name, (fault, not_possible) in faults.items():
        if not_possible:
            tallies.append(f"| {name} | left out | {not_possible} |")
            continue
        (folder / name).mkdir()
        begun = time.monotonic()
        tally = fault(folder / name)
        tally.notes["seconds"] = round(time.monotonic() - begun)
        print(tally.row(), file=sys.stderr)
        tallies.append(tally)
    return tallies


if __name__ == "__main__":
    sys.exit(main())
