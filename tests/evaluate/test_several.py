"""One call scores a model on several test sets, in all its directions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from qkv.training import train
from qkv.translate import Translator
from tests import toy
from tests.toy import Command
from tests.translate.test_catalogue import named


@pytest.fixture
def model(toy_run: Path, tmp_path: Path) -> Path:
    return named(toy_run, tmp_path / "model", "en-de")


def test_a_table_has_a_row_for_each_test_set_and_direction(model: Path, tmp_path: Path, command: Command) -> None:
    some = toy.held_out()[:12]
    toy.write_tsv(tmp_path / "news.en-de.tsv", some)
    # The same the other way round: the model is asked for what it can do.
    toy.write_tsv(tmp_path / "talks.de-en.tsv", [(target, source) for source, target in some])
    tests = ["--tests", tmp_path / "news.en-de.tsv", tmp_path / "talks.de-en.tsv"]
    rows = json.loads(command("evaluate", model, *tests, "--json").out)
    assert [(row["test"], row["direction"], row["sentences"]) for row in rows] == [
        ("news", "en-de", 12),
        ("talks", "en-de", 12),
    ]
    assert rows[0]["scores"] == rows[1]["scores"]
    assert {"bleu", "chrf", "paper"} <= rows[0]["scores"].keys()
    alone = json.loads(command("evaluate", model, "--test", tmp_path / "news.en-de.tsv", "--json").out)
    assert alone["systems"][str(model)]["bleu"] == rows[0]["scores"]["bleu"]
    shown = command("evaluate", model, *tests).out.decode()
    assert f"{rows[0]['scores']['bleu']['value']:.2f}" in shown
    assert rows[0]["scores"]["bleu"]["signature"] in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tests", "test.tsv"], "does not tell its languages"),
        (["--tests", "test.en-fr.tsv"], "the directions are en-de"),
        (["--tests", "test.en-de.tsv", "--directions", "de-en"], "the directions are en-de"),
        (["--tests", "test.en-de.tsv", "--language", "de"], "--tests does not go with --language"),
        (["--test", "test.en-de.tsv", "--directions", "en-de"], "--directions: of use only with --tests; add --tests"),
        (["--test", "test.en-de.tsv", "--direct"], "--direct: of use only with --tests; add --tests"),
        (["--tests", "test.en-de.tsv", "--domain", "docs"], "no tag for the domain 'docs'"),
    ],
)
def test_what_cannot_be_scored_is_told_before_anything_is_translated(
    model: Path, command: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(model.parent)
    toy.write_tsv(Path("test.en-de.tsv"), toy.held_out()[:2])
    ran = command("evaluate", model, *arguments)
    assert (ran.code, told in ran.err) == (2, True)


@pytest.mark.parametrize("way", ["--test", "--tests"])
@pytest.mark.parametrize("package", ["sacrebleu", "sacremoses"])
def test_packages_that_scoring_needs_are_asked_for_before_anything_is_translated(
    model: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, way: str, package: str
) -> None:
    test = toy.write_tsv(tmp_path / "news.en-de.tsv", toy.held_out()[:2])
    # Nobody could translate with this.
    (model / "final").unlink()
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    ran = command("evaluate", model, way, test)
    assert (ran.code, f"scoring needs {package}" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("content", "told"), [("basa\n", "late.en-de.tsv, line 1: no tab"), ("basa\t\n", "late.en-de.tsv hold no text")]
)
def test_every_test_set_is_read_before_anything_is_translated(
    model: Path, tmp_path: Path, command: Command, content: str, told: str
) -> None:
    tests = [toy.write_tsv(tmp_path / "news.en-de.tsv", toy.held_out()[:2]), tmp_path / "late.en-de.tsv"]
    tests[1].write_text(content)
    (model / "final").unlink()
    ran = command("evaluate", model, "--tests", *tests)
    assert (ran.code, told in ran.err) == (3, True), ran.err


def test_files_of_translations_are_read_before_runs_translate(model: Path, tmp_path: Path, command: Command) -> None:
    test = toy.write_tsv(tmp_path / "news.en-de.tsv", toy.held_out()[:2])
    (model / "final").unlink()
    ran = command("evaluate", model, tmp_path / "nowhere.txt", "--test", test)
    assert (ran.code, "no such file" in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--beam", "4"], "--beam: of use only where a run translates"),
        (["--domain", "docs", "--length-penalty", "1"], "--length-penalty, --domain: of use only where a run"),
    ],
)
def test_nothing_is_asked_of_translations_that_are_there_already(
    tmp_path: Path, command: Command, arguments: list[str], told: str
) -> None:
    text = tmp_path / "text"
    text.write_text("basa\n")
    ran = command("evaluate", text, "--reference", text, *arguments)
    assert (ran.code, told in ran.err) == (2, True), ran.err
    assert ran.err.count("\n") == 1


def test_a_domain_is_asked_for_in_both_ways_of_scoring(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = toy.pairs(120)
    toy.write_tsv(tmp_path / "a.en-de.tsv", some[:60])
    toy.write_tsv(tmp_path / "b.en-de.tsv", some[60:])
    mix = tmp_path / "mix.toml"
    mix.write_text('corpus = [{files = ["a.en-de.tsv"]}, {files = ["b.en-de.tsv"], domain = "talks"}]\n')
    with toy.one_thread():
        train([mix], tmp_path / "run", toy.QUICK.with_changes(text={"vocabulary": 340}))
    asked: list[str | None] = []
    between = Translator.between

    def watched(self: Translator, *languages: str | None, domain: str | None = None) -> Translator:
        asked.append(domain)
        return between(self, *languages, domain=domain)

    monkeypatch.setattr(Translator, "between", watched)
    test = toy.write_tsv(tmp_path / "c.en-de.tsv", some[:4])
    found = {
        way: json.loads(command("evaluate", tmp_path / "run", way, test, "--domain", "talks", "--json").out)
        for way in ("--test", "--tests")
    }
    assert found["--test"]["systems"][str(tmp_path / "run")]["chrf"] == found["--tests"][0]["scores"]["chrf"]
    assert asked == ["talks", "talks"]
