"""One call scores a model on several test sets, in all its directions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
        (["--tests", "test.en-de.tsv", "--language", "de"], "--language does not go with --tests"),
    ],
)
def test_what_cannot_be_scored_is_told_before_anything_is_translated(
    model: Path, command: Command, arguments: list[str], told: str
) -> None:
    ran = command("evaluate", model, *arguments)
    assert (ran.code, told in ran.err) == (2, True)
