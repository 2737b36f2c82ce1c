"""Fault 10: corpora with everything that real ones have in them."""

from __future__ import annotations

import random
from pathlib import Path

from qkv.prepare import prepare
from tests.forked import run
from tests.test_prepare import CONFIG, dropped, sentences
from tests.torture.trials import Tally, translate

_DIRT: dict[str, bytes] = {
    "broken UTF-8": b"bro\xffken line\tof text",
    "NUL character": b"nul\0 in\tit",
    "empty": b"\t \xe2\x80\xa8",
    "missing column": b"no tab at all",
    "too long": b"m" * (1 << 20) + b"\tmonster",
    "copy of the source": b"same here\tsame  here",
    "length ratio": b"short\t" + b"long " * 20,
}
_CLEAN = 60
_DIRTY = 12
_LINES = [
    b"", b" ", b"\xe2\x80\xa8", b"a\xe2\x80\xa8b", b"a\x0bb", b"a\x0cb", b"a\xc2\x85b", b"\t", b"nul\0",
    b"\xef\xbb\xbfbom",
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9", b"e\xcc\x81" * 50, b"\xe2\x80\xae rtl", b"<to:fr> </s>", b"ba sa",
    b"a\rb",
]  # fmt: skip


def dirty_corpora(folder: Path, count: int, seed: int = 1) -> Tally:
    """Puts dirt on random lines: each is reported by its number and rule, and every clean pair is kept."""
    tally = Tally(
        "dirty corpora (CRLF, BOM, NUL, broken UTF-8, 1 MB, U+2028 …): each bad line told, each clean one kept"
    )
    generator = random.Random(seed)
    for number in range(count):
        clean = [f"{source}\t{target}".encode() for source, target in sentences(_CLEAN)]
        where = sorted(generator.sample(range(2, _CLEAN + _DIRTY), _DIRTY))
        expected = []
        for line in where:
            rule = generator.choice([*_DIRT, "duplicate"])
            clean.insert(line - 1, clean[0] if rule == "duplicate" else _DIRT[rule])
            expected.append((line, rule))
        # The same dirt twice is a duplicate only where the first was kept, which no dirt is.
        ending, begin = generator.choice([b"\n", b"\r\n"]), generator.choice([b"", b"\xef\xbb\xbf"])
        path = folder / f"dirty-{number}.tsv"
        path.write_bytes(begin + ending.join(clean) + generator.choice([b"", ending]))
        prepared = prepare([path], folder / f"out-{number}", CONFIG.with_changes(data={"held_out": 1}), workers=1)
        pairs = prepared.report["training"]["pairs"] + prepared.report["validation"]["pairs"]
        told = dropped(prepared)
        tally.count(told == expected and pairs == _CLEAN, f"{path}: {told}, not {expected}; {pairs} pairs")
    tally.notes = {"bad lines": count * _DIRTY}
    return tally


def one_line_for_one(folder: Path, toy_run: Path, count: int, seed: int = 1) -> Tally:
    """Translates files of dirty lines: as many come out as went in."""
    tally = Tally("dirty input of translate: one line out for each line in")
    generator = random.Random(seed)
    for number in range(count):
        lines = generator.choices(_LINES, k=40)
        given, made, told = folder / f"{number}.in", folder / f"{number}.out", folder / f"{number}.txt"
        given.write_bytes(b"\n".join(lines) + b"\n")
        code = run(translate, toy_run, given, made, told=told)
        out = made.read_bytes().count(b"\n") if made.exists() else None
        tally.count(code == 0 and out == len(lines), f"{given}: exit {code}, {out} lines; {told.read_text()}")
    tally.notes = {"lines": count * 40}
    return tally
