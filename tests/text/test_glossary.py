"""The glossary: what its lines mean, what they ask of a sentence, and errors that name the line."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from qkv.errors import TextError
from qkv.text.glossary import Demands, Glossary

LINES = """# English to German
hard disk\tFestplatte|Festplattenlaufwerk

disk\tScheibe
Acme Cloud\t=
girl\tMädchen|!Mädel
boy\t!Bub
*\t!Endverbraucher | !Kunde
""".splitlines()


def demands(lines: list[str], sentence: str) -> Demands:
    return Glossary.parse(lines, "terms.tsv").demands(sentence)


@pytest.mark.parametrize(
    ("sentence", "required", "forbidden"),
    [
        ("Nothing here.", [], []),
        ("A Hard disk failed.", [("Festplatte", "Festplattenlaufwerk")], []),
        ("A disk and a hard disk.", [("Scheibe",), ("Festplatte", "Festplattenlaufwerk")], []),
        ("A disk and a disk.", [("Scheibe",), ("Scheibe",)], []),
        ("Disks spin.", [], []),
        ("The Acme  Cloud is up.", [("Acme Cloud",)], []),
        ("The acme cloud is up.", [], []),
        ("The girl and the boy.", [("Mädchen",)], ["Mädel", "Bub"]),
    ],
)
def test_a_sentence_gets_the_demands_of_its_terms(
    sentence: str, required: list[tuple[str, ...]], forbidden: list[str]
) -> None:
    assert demands(LINES, sentence) == Demands(required, ["Endverbraucher", "Kunde", *forbidden])


def test_a_term_that_is_copied_comes_out_as_the_sentence_has_it() -> None:
    assert demands(["linux\t=|GNU"], "Linux or LINUX").required == [("Linux", "GNU"), ("LINUX", "GNU")]


def test_lines_of_one_term_are_taken_together() -> None:
    assert demands(["bank\tBank", "Bank\t!Ufer"], "the bank") == Demands([("Bank",)], ["Ufer"])


def test_what_is_required_wins_over_what_another_term_forbids() -> None:
    lines = ["one\tA|B c", "two\t!A", "three\t!C"]
    assert demands(lines, "one two") == Demands([("B c",)], ["A"])
    assert demands(lines, "one three") == Demands([("A",)], ["C"])
    assert demands(lines, "one two three") == Demands([("A", "B c")], [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hard disk Festplatte", "line 2: no tab; write a source term, one tab, and its target terms"),
        ("a\tb\tc", "line 2: 3 columns; write a source term"),
        ("\tb", "line 2: no source term before the tab"),
        ("a\t", "line 2: a target term of 'a' is empty"),
        ("a\tb||c", "line 2: a target term of 'a' is empty"),
        ("a\t!", "line 2: a target term of 'a' is empty"),
        ("*\tb", "line 2: \\* only forbids, so a target term begins with !: !b"),
        ("a\tb c|!c", "line 2: 'a' requires 'b c' and forbids it"),
        ("X\tb", "line 2: 'X' is translated in line 1 already"),
    ],
)
def test_a_wrong_line_is_named(line: str, message: str) -> None:
    with pytest.raises(TextError, match=f"terms.tsv, {message}"):
        Glossary.parse(["x\ty", line], "terms.tsv")


def test_a_file_that_is_not_utf8_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("a\tä\n".encode() + b"b\t\xe4\n")
    with pytest.raises(TextError, match="line 2: not UTF-8"):
        Glossary.load(path)


def test_a_file_is_read_with_its_mark_and_any_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffcat\tKatze\r\ndog\tHund\r\n".encode())
    glossary = Glossary.load(path)
    assert len(glossary) == 2
    assert glossary.demands("a cat").required == [("Katze",)]


def test_accents_may_be_composed_or_not() -> None:
    assert demands(["cafe\u0301\tKaffee\u0301"], "Le café") == Demands([("Kaffeé",)], [])


def test_a_large_glossary_is_quick() -> None:
    chance = random.Random(1)
    vocabulary = [f"word{number}" for number in range(3000)]
    lines = {" ".join(chance.sample(vocabulary, chance.randint(1, 4))): None for _ in range(10_000)}
    # Many terms with one beginning: what is looked up is a term's length, not each term.
    lines |= {f"same {number}": None for number in range(10_000)}
    glossary = Glossary.parse((f"{line}\ttarget" for line in lines), "terms.tsv")
    sentences = [" ".join([*chance.sample(vocabulary, 20), "same", "same"]) for _ in range(1000)]
    started = time.process_time()
    count = sum(len(glossary.demands(sentence).required) for sentence in sentences)
    assert count > 0
    assert time.process_time() - started < 10
