"""A model's card tells what it learned from, how, and how good it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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

    toy.write_tsv(tmp_path / "talks.en-de.tsv", toy.pairs(120))
    mix = tmp_path / "mix.toml"
    mix.write_text(
        'directions = ["en-de", "de-en"]\n[[corpus]]\nfiles = ["talks.en-de.tsv"]\nrepetitions = 2\n'
        'attribution = "the speakers"\nterms = "CC BY 4.0"\n'
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
        "| talks.en-de | 110 | 2 | the speakers | CC BY 4.0 |",
        "- `model.width = 16`",
        "12 steps",
        "on a laptop, with qkv at commit 1a2b3c4",
        "| news | en-de | 12 | 31.42 |",
        "sacreBLEU: `nrefs:1`",
        "It has learned next to nothing.",
    ):
        assert fact in card
    ran = command("translate", tmp_path / "model", "--to", "de", given=b"ba ko\n")
    assert (ran.code, len(ran.lines)) == (0, 1)
    (tmp_path / "scores.json").write_text("{}x")
    assert command("card", *told, "--scores", tmp_path / "scores.json").code == 3
