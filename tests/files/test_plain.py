"""Plain text keeps its lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import ConfigError, TextError
from qkv.files import MOST_BYTES, kind_of, kinds, translate_file
from tests.files.translations import loud, same


def test_lines_and_their_ends_stay() -> None:
    assert translate_file(b" a\r\n\r\n\tb <c> & d \nlast", "a.txt", loud) == b" A\r\n\r\n\tB <C> & D \nLAST"


def test_a_translation_stays_on_its_line() -> None:
    assert translate_file(b"a\nb", "a.txt", lambda texts: ["x\ny"] * len(texts)) == b"x y\nx y"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_the_encoding_stays(encoding: str) -> None:
    assert translate_file("é à\n".encode(encoding), "a.txt", loud) == "É À\n".encode(encoding)


@settings(deadline=None)
@given(st.text())
def test_nothing_changes_where_no_text_does(text: str) -> None:
    data = text.replace("\0", "").encode()
    assert translate_file(data, "txt", same) == data


def test_what_stands_twice_is_translated_once_and_numbers_never() -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    translate_file(b"a\nb\na\n12.5\n", "a.txt", translate)
    assert asked == ["a", "b"]


def test_a_file_of_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a\.exe: files of this kind cannot be translated; there are \.txt"):
        translate_file(b"", "a.exe", same)


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(TextError, match="is the limit"):
        translate_file(b" " * (MOST_BYTES + 1), "a.txt", same)


def test_kinds_are_found_by_name_and_by_extension() -> None:
    for kind in kinds():
        for extension in kind.extensions:
            assert kind_of(f"a{extension.upper()}") == kind_of(extension) == kind_of(extension[1:]) == kind
