"""What is said of a text while it grows is never taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.text.growing import GrowingText
from qkv.text.subwords import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(toy_data: Path) -> Tokenizer:
    return Tokenizer.load(toy_data / "tokenizer.model")


def spelled(tokenizer: Tokenizer, spelling: bytes) -> list[int]:
    byte_of = {tokenizer.byte(token): token for token in range(tokenizer.size)}
    return [byte_of[byte] for byte in spelling]


def test_characters_that_are_spelled_in_bytes_come_whole(tokenizer: Tokenizer) -> None:
    growing = GrowingText(tokenizer)
    ids = [*tokenizer.encode("basa"), *spelled(tokenizer, "日é".encode()), *tokenizer.encode("kodu")]
    said = [growing.add(token) for token in ids]
    assert "".join(said) == growing.text == tokenizer.decode(ids) == "basa日é kodu"
    assert [one for one in said if not one.isascii()] == ["日", "é"]
    assert "\ufffd" not in growing.text


def test_bytes_that_are_no_text_are_said_once_that_is_clear(tokenizer: Tokenizer) -> None:
    growing = GrowingText(tokenizer)
    first, second, other = *spelled(tokenizer, b"\xe6\x97"), tokenizer.encode("basa")[0]
    assert growing.add(first) == growing.add(second) == ""
    assert growing.add(other).startswith("\ufffd")
    assert growing.text == tokenizer.decode([first, second, other])


def test_a_symbol_that_says_nothing_parts_no_character(tokenizer: Tokenizer) -> None:
    first, second = spelled(tokenizer, "é".encode())
    growing = GrowingText(tokenizer)
    assert [growing.add(token) for token in (first, tokenizer.padding, second)] == ["", "", "é"]


@given(data=st.data())
def test_what_is_said_is_the_beginning_of_every_text_that_may_come_of_it(
    tokenizer: Tokenizer, data: st.DataObject
) -> None:
    bytes_of_some = st.sampled_from(spelled(tokenizer, "é日🎉▁ \n".encode() + b"\xff\xc0"))
    tokens = st.one_of(bytes_of_some, st.integers(0, tokenizer.size - 1))
    ids = data.draw(st.lists(tokens, max_size=12))
    growing = GrowingText(tokenizer)
    said = ""
    for token in ids:
        said += growing.add(token)
        assert said == growing.text
    assert tokenizer.decode(ids).startswith(said)
