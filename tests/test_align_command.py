"""`qkv align`, on a language that is read backwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests import toy
from tests.toy import Command

PAIRS = toy.held_out()[:30]
GIVEN = "".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()


@pytest.fixture(scope="module")
def learned(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(toy_run, tmp_path_factory.mktemp("aligned") / "run"))


def test_heads_are_learned_and_words_found(command: Command, learned: Path) -> None:
    told = command("align", learned, "--learn", learned / "data")
    assert told.code == 0
    assert "a word is found best by head" in told.err
    kept = json.loads((learned / "alignment.json").read_text())
    assert kept["heads"]
    assert 0 < kept["quality"] <= 1
    ran = command("align", learned, given=GIVEN)
    assert "usually" not in ran.err
    assert ran.code == 0
    right = total = 0
    for line, (source, _) in zip(ran.lines, PAIRS, strict=True):
        last = len(source.split()) - 1
        expected = {f"{last - word}-{word}" for word in range(last + 1)}
        right += len(expected & {*line.split()})
        total += len(expected)
    assert right / total > 0.9
    words = command("align", learned, "--words", given=b"basa kodu\tudok asab\n").lines[0].split()
    assert {*words} <= {"basa=asab", "kodu=udok", "basa=udok", "kodu=asab"}


def test_who_has_tags_placed_hears_which_heads_do_it(command: Command, toy_run: Path, learned: Path) -> None:
    command("align", learned, "--learn", learned / "data")
    for run, by_usual_heads in ((toy_run, True), (learned, False)):
        ran = command("translate", run, "--document", "--tags", given=b"<b>basa</b> kodu\n")
        assert ("aligns by the heads that usually do" in ran.err) == by_usual_heads
        assert "usually" not in command("translate", run, "--document", given=b"basa kodu\n").err


def test_heads_are_learned_of_one_run(command: Command, toy_run: Path) -> None:
    ran = command("align", toy_run, toy_run, "--learn", toy_run / "data")
    assert (ran.code, "--learn is for one run" in ran.err) == (2, True)


def test_what_is_no_pair_is_told_with_its_line(command: Command, toy_run: Path) -> None:
    ran = command("align", toy_run, given=b"basa\tasab\nkodu\n")
    assert "aligns by the heads that usually do" in ran.err
    assert ran.code == 3
    assert "line 2: no tab between a source and its translation; it is not aligned" in ran.err
    assert len(ran.lines) == 2


def test_damaged_heads_are_told(command: Command, toy_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(toy_run, tmp_path / "run"))
    for content in ("{", '{"heads": [[99, 0]], "when_read": false, "quality": 0.5}', '{"heads": []}'):
        (run / "alignment.json").write_text(content)
        ran = command("align", run, given=b"basa\tasab\n")
        assert ran.code == 3
        assert "alignment.json" in ran.err
