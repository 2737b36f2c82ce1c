"""A model's card tells what it learned from, how, and how good it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from qkv.prepare import Prepared
from qkv.run import RunDirectory
from tests import toy
from tests.toy import QUICK, Command

ROW = {
    "test": "news",
    "direction": "en-de",
    "through": None,
    "sentences": 12,
    "scores": {"bleu": {"name": "sacreBLEU", "value": 31.4159, "signature": "nrefs:1"}},
}


@pytest.fixture
def told(tmp_path: Path) -> list[object]:
    """A run of two directions, and what `qkv card` is told of it."""
    from qkv.training import train

    some = toy.pairs(160)
    # One is too long for a row.
    toy.write_tsv(tmp_path / "talks.en-de.tsv", [*some[:120], (40 * "basa ", 40 * "asab ")])
    toy.write_tsv(tmp_path / "papers.en-de.tsv", some[120:])
    mix = tmp_path / "mix.toml"
    mix.write_text(
        'directions = ["en-de", "de-en"]\n[[corpus]]\nfiles = ["talks.en-de.tsv"]\nrepetitions = 2\n'
        'attribution = "the speakers"\nterms = "CC BY 4.0"\n'
        '[[corpus]]\nfiles = ["papers.en-de.tsv"]\nrepetitions = 0.5\n'
    )
    with toy.one_thread():
        train([mix], tmp_path / "run", QUICK.with_changes(text={"vocabulary": 340}))
    (tmp_path / "notes.md").write_text("It has learned next to nothing.\n")
    (tmp_path / "scores.json").write_text(json.dumps([ROW]))
    return [
        tmp_path / "model", "--run", tmp_path / "run", "--data", tmp_path / "run" / "data", "--title", "A toy",
        "--recipe", "base", "--commit", "1a2b3c4", "--hardware", "a laptop", "--notes", tmp_path / "notes.md",
    ]  # fmt: skip


def test_a_card_has_the_facts_and_the_model_still_loads(tmp_path: Path, told: list[object], command: Command) -> None:
    refused = command("card", *told)
    assert (refused.code, "no such" in refused.err or "no exported model" in refused.err) == (2, True)
    assert command("export", tmp_path / "run", "--output", tmp_path / "model").code == 0
    assert command("card", *told, "--scores", tmp_path / "scores.json").code == 0
    card = (tmp_path / "model" / "README.md").read_text()
    for fact in (
        "# A toy",
        "Translates English → German, German → English",
        "where times is below 1, that share of what there was had been drawn.",
        "- `model.width = 16`",
        "12 steps",
        "on a laptop, with qkv at commit 1a2b3c4",
        "| news | en-de | 12 | 31.42 |",
        "sacreBLEU: `nrefs:1`",
        "It has learned next to nothing.",
    ):
        assert fact in card
    rows = [line.split(" | ") for line in card.splitlines() if ".en-de | " in line]
    assert [row[0] for row in rows] == ["| talks.en-de", "| papers.en-de"]
    assert [row[2] for row in rows] == ["2", "0.5"]
    assert rows[0][4:] == ["the speakers", "CC BY 4.0 |"]
    (talks, papers), examples = ([int(row[column]) for row in rows] for column in (1, 3))
    assert examples == [2 * 2 * talks, 2 * papers]
    assert f"In all directions together {sum(examples)} pairs" in card
    corpus = Prepared.open(tmp_path / "run" / "data").corpus("train")
    assert talks + papers == len({*corpus.lines.tolist()})
    report = tmp_path / "run" / "data" / "report.json"
    report.write_text(report.read_text().replace('"repetitions": 0.5', '"repetitions": 1.0'))
    assert command("card", *told, "--scores", tmp_path / "scores.json").code == 0
    assert "drawn" not in (tmp_path / "model" / "README.md").read_text()
    # What an older version prepared tells less, and the card says so.
    report.write_text(report.read_text().replace('"examples"', '"nobody s"'))
    assert command("card", *told, "--scores", tmp_path / "scores.json").code == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"| talks.en-de | {talks} | 2 | – | the speakers |" in card
    assert "counted before those longer than a row were left out" in card
    ran = command("translate", tmp_path / "model", "--to", "de", given=b"ba ko\n")
    assert (ran.code, len(ran.lines)) == (0, 1)
    (tmp_path / "scores.json").write_text("{}x")
    assert command("card", *told, "--scores", tmp_path / "scores.json").code == 3


def test_the_card_of_an_adapted_run_says_that_it_learned_from_more(
    tmp_path: Path, told: list[object], command: Command
) -> None:
    from qkv.training import train

    toy.write_tsv(tmp_path / "letters.en-de.tsv", toy.pairs(140, seed=6))
    before = RunDirectory(tmp_path / "run")
    with toy.one_thread():
        train([tmp_path / "letters.en-de.tsv"], tmp_path / "adapted", before.config(), adapt=before.path)
    assert command("export", tmp_path / "adapted", "--output", tmp_path / "model").code == 0
    told[told.index(tmp_path / "run")] = tmp_path / "adapted"
    told[told.index(tmp_path / "run" / "data")] = tmp_path / "adapted" / "data"
    assert command("card", *told).code == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "It began with the weights of another run, after step 12 of it." in card
    assert "letters" in card and "talks" not in card


@pytest.fixture
def unnamed(tmp_path: Path, toy_run: Path, exported: Path) -> list[object]:
    """A run that knows no languages, and what `qkv card` is told of it."""
    shutil.copytree(toy_run, tmp_path / "run")
    shutil.copytree(exported, tmp_path / "model")
    (tmp_path / "notes.md").write_text("It has learned a toy.\n")
    return [
        tmp_path / "model", "--run", tmp_path / "run", "--data", tmp_path / "run" / "data", "--title", "A toy",
        "--recipe", "tiny", "--commit", "1a2b3c4", "--hardware", "a laptop", "--notes", tmp_path / "notes.md",
    ]  # fmt: skip


def test_a_card_names_no_languages_that_the_run_does_not_know(
    tmp_path: Path, unnamed: list[object], command: Command
) -> None:
    assert command("card", *unnamed).code == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\nWhich languages it translates was not said when it was trained. It takes" in card
    assert "none" not in card.lower().partition("## recipe")[0]


@pytest.mark.parametrize("kept", ["validation", None])
def test_a_run_without_a_report_of_its_training_gets_no_card(
    tmp_path: Path, unnamed: list[object], command: Command, kept: str | None
) -> None:
    log = tmp_path / "run" / "log.jsonl"
    lines = [line for line in log.read_text().splitlines() if f'"kind": "{kept}"' in line]
    log.unlink()
    if kept is not None:
        assert lines
        log.write_text("\n".join(lines))
    ran = command("card", *unnamed)
    assert (ran.code, ran.err.count("\n")) == (3, 1), ran.err
    assert f"{log} has no report of training, which a card tells of; put the log there" in ran.err
