"""Words, and which came from which."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.text.alignment import align, words
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Ein Haus.", ["Ein", "Haus", "."]),
        ("l'animal, it's 3.14 e-mail", ["l'animal", ",", "it's", "3.14", "e-mail"]),
        ("«Oui» (non)", ["«", "Oui", "»", "(", "non", ")"]),
    ],
)
def test_words_and_signs_are_told_apart(text: str, expected: list[str]) -> None:
    assert [text[begin:end] for begin, end in words(text)] == expected


def test_a_word_is_linked_to_the_one_its_subwords_looked_at_most() -> None:
    source, target = "the old house", "das alte Haus"
    source_tokens = [(0, 3), (3, 7), (7, 10), (10, 13)]  # the, old, hou, se
    target_tokens = [(0, 3), (3, 6), (6, 8), (8, 13)]  # das, al, te, Haus
    looked = [
        [0.9, 0.0, 0.0, 0.0, 0.1],
        [0.1, 0.5, 0.2, 0.2, 0.0],
        [0.0, 0.4, 0.3, 0.3, 0.0],
        [0.1, 0.0, 0.3, 0.4, 0.2],
    ]
    found = align(source, source_tokens, target, target_tokens, looked)
    assert str(found) == "0-0 2-1 2-2"
    assert [source[slice(*found.source[link.source])] for link in found.links] == ["the", "house", "house"]
    assert [link.weight for link in found.links] == [0.9, 0.5, 0.7]


def test_who_looks_at_the_end_of_the_source_has_no_link() -> None:
    assert str(align("a b", [(0, 1), (1, 3)], "x y", [(0, 1), (1, 3)], [[0.2, 0.1, 0.7], [0.1, 0.9, 0.0]])) == "1-1"


def test_nothing_is_aligned_to_nothing() -> None:
    assert align("", [], "", [], []).links == ()
    assert align("", [], "x", [(0, 1)], [[1.0]]).links == ()


@given(st.text(max_size=40))
def test_spans_of_subwords_cover_the_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tokenizer = learned(tmp_path_factory)
    ids = tokenizer.encode(normalise(text))
    spans, whole = tokenizer.spans(ids), tokenizer.decode(ids)
    assert len(spans) == len(ids)
    assert "".join(whole[begin:end] for begin, end in spans) == whole
    # Whatever was cut off before a span is what its ids say without those after it.
    for number, (begin, _) in enumerate(spans):
        assert tokenizer.decode(ids[:number]).rstrip("\ufffd") == whole[:begin].rstrip("\ufffd") or begin == 0


_LEARNED: list[Tokenizer] = []


def learned(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    if not _LEARNED:
        from qkv.config import TextConfig

        folder: Path = tmp_path_factory.mktemp("tokenizer")
        corpus = folder / "corpus.txt"
        corpus.write_text("the old house stands in the old town\nein altes Haus steht in der alten Stadt\n" * 50)
        config = TextConfig(vocabulary=320)
        _LEARNED.append(Tokenizer.learn([corpus], config, folder / "tokenizer.model"))
    return _LEARNED[0]
