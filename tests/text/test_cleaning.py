"""Cleaning: what normalise makes of any text, and the reason each bad pair is left out for."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.config import DataConfig
from qkv.text.cleaning import PAIR_RULES, REPAIRS, Mended, Pair, Repair, clean, normalise
from qkv.text.files import Fault, RawPair, Side

DATA = DataConfig(max_bytes=200, max_ratio=3.0)


def cleaned(source: str | bytes, target: str | bytes, data: DataConfig = DATA) -> Mended | Fault:
    raw = [side if isinstance(side, bytes) else side.encode() for side in (source, target)]
    return clean(RawPair(raw[0], raw[1]), data, PAIR_RULES)


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
    assert cleaned(source, target) == Fault(reason, side)


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
    assert cleaned(source, target) == Mended(Pair(source, target))


def test_copies_stay_where_they_are_wanted() -> None:
    assert cleaned("Berlin", "Berlin", DataConfig(keep_copies=True)) == Mended(Pair("Berlin", "Berlin"))


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
def test_each_repair_is_told_with_its_side(given_text: str, mended: str, repair: str) -> None:
    assert cleaned(given_text, "other") == Mended(Pair(mended, "other"), [Repair(repair, "source")])
    assert cleaned("other", given_text) == Mended(Pair("other", mended), [Repair(repair, "target")])
    assert repair in REPAIRS


def test_all_repairs_of_a_line_are_told() -> None:
    assert cleaned("a  b\r", "\ufeffc") == Mended(
        Pair("a b", "c"),
        [Repair("carriage return", "source"), Repair("white space", "source"), Repair("byte-order mark", "target")],
    )


@pytest.mark.parametrize("further", [b"", b"c", b"c\td \xff\r"])
def test_more_columns_are_told_with_what_they_say(further: bytes) -> None:
    mended = Mended(Pair("a", "b"), [Repair("more columns", None, further)])
    assert clean(RawPair(b"a", b"b", None, further), DATA, PAIR_RULES) == mended
    assert "more columns" in REPAIRS


def test_what_the_reader_found_comes_first() -> None:
    for fault in (Fault("missing column", None), Fault("too long", "target")):
        assert clean(RawPair(b"\0", b"", fault), DATA, PAIR_RULES) == fault


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
    text = text.replace("\0", "")
    result = cleaned(text, "another text")
    if isinstance(result, Mended):
        assert bool(result.repairs) == (result.pair.source != text)


def test_a_side_without_letters_is_left_out_where_they_are_asked_for() -> None:
    def rule(source: str, target: str, least: float) -> bool:
        return PAIR_RULES["few letters"](Pair(source, target), DataConfig(least_letters=least))

    assert rule("(353621)", "(353621)", 0.3)
    assert rule("a word", "<!-- 1 -->", 0.3)
    assert not rule("April 24, 2019", "24. April 2019", 0.3)
    assert not rule("猫が好き", "J'aime les chats.", 0.3)
    assert not rule("1", "2", 0.0)
