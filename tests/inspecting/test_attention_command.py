"""`qkv attention`, as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from qkv import Translator
from qkv.commands.attention import TIRED, WIDE
from tests.toy import Command, held_out

SHIPPED = Path(__file__).parents[2] / "models" / "default"
FIRST, SECOND = (source for source, _ in held_out()[:2])


def test_a_sentence_becomes_a_page_and_numbers(command: Command, toy_run: Path, tmp_path: Path) -> None:
    html, told = tmp_path / "out.html", tmp_path / "out.json"
    ran = command("attention", FIRST, toy_run, "--html", html, "--json", told, "--beam", 2)
    assert (ran.code, ran.out) == (0, b"")
    text = Translator.load(toy_run).translate([FIRST], beam=2)[0].text
    assert ran.err == f"{FIRST} → {text}\n"
    inspection = json.loads(told.read_text())
    assert (inspection["version"], inspection["target"]["text"]) == (1, text)
    assert inspection["search"]["beam"] == 2
    assert f"<title>Attention: {FIRST}</title>" in html.read_text()


def test_two_sentences_are_compared(command: Command, toy_run: Path) -> None:
    ran = command("attention", FIRST, toy_run, "--compare", SECOND, "--json", "-")
    told = json.loads(ran.out)
    assert [told[name]["source"]["text"] for name in ("inspection", "compare")] == [FIRST, SECOND]


def test_without_a_sentence_there_is_the_papers_example(command: Command, toy_run: Path) -> None:
    told = json.loads(command("attention", toy_run, "--json", "-").out)
    assert [told[name]["source"]["text"] for name in ("inspection", "compare")] == [TIRED, WIDE]


def test_a_page_has_the_example_in_every_language_of_the_model(command: Command, tmp_path: Path) -> None:
    html = tmp_path / "out.html"
    assert command("attention", SHIPPED, "--to", "de", "--html", html).code == 0
    told = json.loads(re.findall(r'id="inspection">(.*?)</script>', html.read_text())[0])
    assert told["inspection"]["to"] == told["compare"]["to"] == "de"
    ((first, second),) = told["elsewhere"]
    assert [(one["to"], one["source"]["text"]) for one in (first, second)] == [("fr", TIRED), ("fr", WIDE)]
    assert "rue" in first["target"]["text"] and first["vectors"] is None


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([FIRST], "attention needs --html FILE, or --json FILE"),
        (["", "--json", "-"], "a sentence is empty"),
        (["--from", "de", "--json", "-"], "the example is English; give a sentence in de"),
        ([FIRST, "nowhere", "--json", "-"], "no such run directory: nowhere"),
        ([FIRST, "one", "two", "--json", "-"], "an ensemble cannot be looked into; name one model"),
        ([str(SHIPPED), str(SHIPPED), "--json", "-"], "an ensemble cannot be looked into; name one model"),
        ([FIRST, "--json", "-", "--html", "-"], "--html and --json cannot both go to standard output"),
        ([300 * "long ", "nowhere", "--json", "-"], "no such run directory: nowhere"),
    ],
)
def test_what_is_typed_wrong_is_said_in_a_line(command: Command, typed: list[str], said: str) -> None:
    ran = command("attention", *typed)
    assert (ran.code, ran.out) == (2, b"")
    assert said in ran.err


def test_a_page_that_cannot_be_written_is_said_in_a_line(command: Command, toy_run: Path, tmp_path: Path) -> None:
    ran = command("attention", FIRST, toy_run, "--json", tmp_path / "nowhere" / "out.json")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
