"""The benchmark of amounts reads them as a reader of the language would."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pytest

from bench.amounts import SENTENCES, amounts, called_faulty, drawn, main, written
from qkv.text.numbers import changed_numbers


@pytest.mark.parametrize("language", SENTENCES)
def test_what_is_drawn_is_read_as_it_was_written(language: str) -> None:
    asked = drawn(language, 3)
    assert len(asked) == 36
    assert asked == drawn(language, 3)
    for text, amount in asked:
        assert amounts(text, language) == [amount]


@pytest.mark.parametrize(
    ("text", "language", "read"),
    [
        ("Es kostet 1,500 Euro.", "de", ["1.5"]),
        ("Es kostet 1.500 Euro.", "de", ["1500"]),
        ("Es kostet 1 500,20 Euro.", "de", ["1500.20"]),
        ("It costs 9.867.", "en", ["9.867"]),
        ("It costs 9.867,20.", "en", [None]),
        ("Il doit 3h2,30 dollars.", "fr", [None]),
        ("coûte 1 1001 euros", "fr", ["1", "1001"]),
        ("coûte 1.500 euros", "fr", ["1500"]),
        ("payé71 euros", "fr", [None]),
        ("nothing", "en", []),
    ],
)
def test_what_is_wrong_is_read_as_another_amount_or_as_none(text: str, language: str, read: list[str | None]) -> None:
    assert amounts(text, language) == [None if one is None else Decimal(one) for one in read]


def test_amounts_are_written_as_their_language_does() -> None:
    amount = Decimal("1234567.5")
    assert [written(amount, one) for one in ("en", "de", "fr")] == [
        "1,234,567.50", "1.234.567,50", "1\u00a0234\u00a0567,50",
    ]  # fmt: skip
    assert written(Decimal(950), "de") == "950"


def test_what_a_translation_is_held_to_is_what_its_reader_reads() -> None:
    """An oracle for `changed_numbers`: it and this benchmark know nothing of each other."""
    draw = random.Random(3)
    for _ in range(2000):
        amount = draw.randrange(10 ** draw.randint(1, 13)) + Decimal(draw.choice([0, 0, draw.randrange(100)])) / 100
        source, target = draw.sample([*SENTENCES], 2)
        asked, right = written(amount, source), written(amount, target)
        assert changed_numbers(f"a {asked} b", f"c {right} d", languages=(source, target)) == []
        if amount >= 1000 and amounts(f"c {asked} d", target) != [amount]:
            assert changed_numbers(f"a {asked} b", f"c {asked} d", languages=(source, target)) == [asked]


def test_references_are_called_faulty_by_what_they_lack() -> None:
    pairs = [
        ("It was $20 in 1967.", "Es waren 20 €."),
        ("on 1/2/2024", "am 1.2.2024"),
        ("in 2019", "in 2019"),
        ("8 p.m.", "18 Uhr"),
    ]
    assert called_faulty(pairs, ("en", "de")) == {
        "numbers": (1, 2),
        "currencies": (1, 1),
        "dates": (0, 1),
        "times": (1, 1),
    }


@pytest.mark.parametrize(("languages", "text", "told"), [("ende", "a\tb", "two are needed"), ("en-de", "a", "line 1")])
def test_what_is_no_pair_of_references_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    languages: str,
    text: str,
    told: str,
) -> None:
    (tmp_path / "pairs").write_text(text)
    monkeypatch.setattr("sys.argv", ["amounts", "--references", str(tmp_path / "pairs"), "--languages", languages])
    assert main() == 2
    assert told in capsys.readouterr().err
