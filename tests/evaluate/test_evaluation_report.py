"""The report tells people and programs the same numbers."""

from __future__ import annotations

import json

import pytest

from qkv.errors import TextError
from qkv.evaluate import evaluate

REFERENCES = [
    "Der Hund schläft heute auf dem alten Sofa.",
    "Sie kauft morgen drei frische Brote.",
    "Wir fahren im Mai nach Wien.",
]
WEAK = ["Hund schläft Sofa.", "Sie kauft Brote.", "Wir fahren nach Wien."]
STRONG = [
    "Der Hund schläft heute auf dem Sofa.",
    "Sie kauft morgen drei Brote.",
    "Wir fahren im Mai nach Wien.",
]


def test_one_system_is_scored_and_compared_with_nobody() -> None:
    report = evaluate({"run/out.de": STRONG}, REFERENCES, language="de")
    assert report.comparisons == []
    assert "p =" not in report.text
    assert report.text.startswith("3 sentences\n")


def test_every_score_stands_in_the_text_with_its_signature() -> None:
    report = evaluate({"weak": WEAK, "strong": STRONG}, REFERENCES, language="de")
    for scores in report.scores.values():
        for one in scores.values():
            (row,) = [line for line in report.text.splitlines() if line.endswith(f"  {one.name}")]
            assert f"{one.value:.2f}" in row.split()
            assert one.signature in report.text


def test_columns_stand_in_the_order_of_the_systems() -> None:
    lines = evaluate({"a system with a long name": WEAK, "b": STRONG}, REFERENCES).text.splitlines()
    heading, row = lines[2], lines[3]
    assert heading.index("long name") < heading.index(" b")
    # Numbers end where their headings do.
    assert row[: len(heading)].rstrip() == row[: len(heading)]
    assert float(row.split()[0]) < float(row.split()[1])


def test_later_systems_are_compared_with_the_first() -> None:
    report = evaluate({"weak": WEAK, "strong": STRONG, "same": WEAK}, REFERENCES)
    strong, same = report.comparisons
    assert {one.baseline.system for one in (*strong.values(), *same.values())} == {"weak"}
    assert strong["bleu"].better == "strong"
    assert same["chrf"].better is None
    assert f"sacreBLEU: {strong['bleu'].verdict}" in report.text
    assert "chrF2: no difference" in report.text


def test_values_survive_json() -> None:
    report = evaluate({"weak": WEAK, "strong": STRONG}, REFERENCES, language="de")
    values = json.loads(json.dumps(report.values))
    assert values == report.values
    assert values["sentences"] == 3
    assert values["systems"]["strong"]["paper"]["value"] == report.scores["strong"]["paper"].value
    (comparison,) = values["comparisons"]
    assert comparison["bleu"]["better"] == "strong"
    assert comparison["bleu"]["significant"] is report.comparisons[0]["bleu"].significant
    assert comparison["chrf"]["system"]["score"] == report.comparisons[0]["chrf"].system.score


def test_the_system_with_a_wrong_count_is_named() -> None:
    with pytest.raises(TextError, match=r"strong has 2 translations, but there are 3 references"):
        evaluate({"weak": WEAK, "strong": STRONG[1:]}, REFERENCES)
