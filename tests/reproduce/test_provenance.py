"""How a number came about, as a report tells it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import qkv
from qkv.recipes import recipe
from qkv.reproduce.data import Data
from qkv.reproduce.plan import Length
from qkv.reproduce.provenance import changed, code_of, command, commit_of, compared, described


def git(place: Path, *words: str) -> str:
    someone = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(["git", "-C", str(place), *someone, *words], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_a_command_has_what_decides_about_the_numbers_as_it_could_be_typed() -> None:
    assert command("table3", Data(), Length(), {}, {"rows": [], "width": []}) == "qkv reproduce table3"
    data, changes = Data(Path("my data"), corpora="there", mirror="http://a"), {"model.width": "64", "search.beam": "2"}
    told = command("base-en-de", data, Length(seconds=20.0), changes, {"test": [Path("a.en"), Path("a.de")]})
    assert told == (
        "qkv reproduce base-en-de --data 'my data' --test a.en a.de --budget 20s --set model.width=64 "
        "--set search.beam=2"
    )
    told = command("table3", Data(), Length(steps=300), {}, {"rows": ["base,A"], "layers": [3]}, processes=8)
    assert told == "torchrun --nproc-per-node 8 -m qkv reproduce table3 --rows base,A --layers 3 --steps 300"


@pytest.mark.parametrize(("seconds", "told"), [(0.5, "0.5s"), (300.0, "300s"), (1e7, "10000000s")])
def test_a_budget_is_written_in_seconds(seconds: float, told: str) -> None:
    assert command("table3", Data(), Length(seconds=seconds), {}, {}).endswith(f"--budget {told}")


def test_a_commit_is_that_of_the_repository_that_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = tmp_path / "package" / "ours.py", tmp_path / "package" / "environment" / "theirs.py"
    for file in (ours, theirs):
        file.parent.mkdir(exist_ok=True)
        file.write_text("one = 1\n")
    assert commit_of(ours) is None
    git(tmp_path, "init")
    git(tmp_path, "add", "package/ours.py")
    assert commit_of(ours) is None
    git(tmp_path, "commit", "--message", "one")
    git(tmp_path, "tag", "a-name")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit_of(ours) == head[:12]
    # It lies there, and is no part of it.
    assert commit_of(theirs) is None
    ours.write_text("one = 2\n")
    assert commit_of(ours) == f"{head[:12]}-dirty"
    monkeypatch.setenv("PATH", "")
    assert commit_of(ours) is None


def test_code_is_told_once_for_all_runs_that_it_trained() -> None:
    one = {"qkv": "1", "torch": "2", "commit": "abc"}
    assert code_of([one, one]) == "qkv 1, torch 2, commit abc"
    # An older version kept no commit.
    assert code_of([one, {"qkv": "1", "torch": "2"}]) == "qkv 1, torch 2 and qkv 1, torch 2, commit abc"


def test_what_differs_is_told_once_for_all_runs_that_have_it() -> None:
    base = recipe("base")
    deep = base.with_changes(model={"encoder_layers": 8})
    assert changed(base, base) == {}
    runs = {
        "one": changed(base, base.with_changes(model={"width": 64}, training={"clip": 0.1})),
        "two": changed(base, base.with_changes(model={"width": 64}, text={"tagged": True})),
        "deep": changed(deep, deep.with_changes(model={"width": 64, "encoder_layers": 1}, text={"tagged": True})),
    }
    assert runs["one"] == {"model.width": {"recipe": 512, "here": 64}, "training.clip": {"recipe": None, "here": 0.1}}
    assert described(runs) == [
        "model.width=64 instead of 512",
        "training.clip=0.1 instead of none (one)",
        "text.tagged=true instead of false (all but one)",
        "model.encoder_layers=1 instead of 8 (deep)",
    ]
    assert compared("base", described({"one": runs["one"]})) == (
        "differs from base: model.width=64 instead of 512, training.clip=0.1 instead of none"
    )
    assert compared("base", described({"one": {}})) == "nothing differs from base"


def test_this_code_is_of_a_commit_where_git_knows_it() -> None:
    commit = commit_of(Path(qkv.__file__))
    assert commit is None or re.fullmatch(r"[0-9a-f]{12}(-dirty)?", commit)
