"""Cleaning: what normalise makes of any text, and the reason each bad pair is left out for."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.config import DataConfig
from qkv.text.cleaning import FAULTS, PAIR_RULES, REPAIRS, SIDE_RULES, Pair, clean, normalise
from qkv.text.files import Fault, RawPair, Side

DATA = DataConfig(max_bytes=200, max_ratio=3.0)


def cleaned(source: str | bytes, target: str | bytes, data: DataConfig = DATA) -> tuple[Pair | Fault, Counter[str]]:
    repairs: Counter[str] = Counter()
    raw = [side if isinstance(side, bytes) else side.encode() for side in (source, target)]
    return clean(RawPair(raw[0], raw[1]), data, PAIR_RULES, repairs), repairs


@pytest.mark.parametrize(
    ("source", "target", "reason", "side"),
    [
        (b"bro\xffken", "fine", "broken UTF-8", "source"),
        ("fine", b"cut \xc3", "broken UTF-8", "target"),
        ("a\0b", "fine", "NUL character", "source"),
        ("fine", "a\0b", "NUL character", "target"),
        ("", "something", "empty", "source"),
        (" \t\u2028\u3000", "something", "empty", "source"),
        ("something", "\x01\ufeff", "empty", "target"),
        ("x" * 201, "y" * 200, "too long", "source"),
        ("é" * 101, "y" * 200, "too long", "source"),
        ("x" * 200, "y" * 201, "too long", "target"),
        ("the same", "the  same\r", "copy of the source", None),
        ("x" * 10, "y" * 51, "length ratio", None),
        ("x" * 51, "y" * 10, "length ratio", None),
    ],
)
def test_each_rule_names_itself_and_the_side_to_blame(
    source: str | bytes, target: str | bytes, reason: str, side: Side | None
) -> None:
    result, repairs = cleaned(source, target)
    assert result == Fault(reason, side)
    assert reason in {*SIDE_RULES, *PAIR_RULES, *FAULTS}
    assert not repairs


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("x" * 200, "y" * 200),
        ("x" * 10, "y" * 50),
        ("Yes.", "Ja, das ist richtig"),
        ("Good morning, everyone", "皆さん、おはようございます"),
        ("<s> </s> <pad>", "<to:fr>"),
    ],
)
def test_good_pairs_stay_as_they_are(source: str, target: str) -> None:
    assert cleaned(source, target) == (Pair(source, target), Counter())


def test_copies_stay_where_they_are_wanted() -> None:
    assert cleaned("Berlin", "Berlin", DataConfig(keep_copies=True))[0] == Pair("Berlin", "Berlin")


@pytest.mark.parametrize(
    ("given_text", "mended", "repair"),
    [
        ("a b\r", "a b", "carriage return"),
        ("\ufeffa b", "a b", "byte-order mark"),
        ("a\x07 b\x9f", "a b", "control character"),
        ("a \t b\u2028c ", "a b c", "white space"),
        ("a\xa0b", "a b", "white space"),
        ("e\u0301", "é", "composition"),
    ],
)
def test_each_repair_is_counted(given_text: str, mended: str, repair: str) -> None:
    assert cleaned(given_text, "other") == (Pair(mended, "other"), Counter({repair: 1}))
    assert repair in REPAIRS


def test_more_columns_are_counted() -> None:
    repairs: Counter[str] = Counter()
    clean(RawPair(b"a", b"b", None, more_columns=True), DATA, PAIR_RULES, repairs)
    assert repairs == {"more columns": 1}


def test_what_the_reader_found_comes_first() -> None:
    for fault in (Fault("missing column", None), Fault("too long", "target")):
        assert clean(RawPair(b"\0", b"", fault), DATA, PAIR_RULES, Counter()) == fault


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert normalise("a\ud800b\udfff") == "a\ufffdb\ufffd"


def test_joiners_and_marks_stay() -> None:
    family, persian = "👨\u200d👩\u200d👧", "می\u200cخواهم"
    assert normalise(family) == family
    assert normalise(persian) == persian


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_normalised_text_is_clean_whatever_came_in(text: str) -> None:
    result = normalise(text)
    assert result == normalise(result)
    assert unicodedata.is_normalized("NFC", result)
    assert result.encode().decode() == result
    assert result.split() == result.split(" ") or not result
    assert not any(unicodedata.category(character) == "Cc" for character in result)
    assert "\t" not in result
    assert "\n" not in result


@given(st.text())
def test_a_changed_line_has_a_repair(text: str) -> None:
    result, repairs = cleaned(text.replace("\0", ""), "another text")
    if isinstance(result, Pair):
        assert bool(repairs) == (result.source != text.replace("\0", ""))
