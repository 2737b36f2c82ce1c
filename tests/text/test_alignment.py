"""Words, and which came from which."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.text.alignment import align
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer
from qkv.text.words import Span


def spans(*ends: int) -> list[Span]:
    """One after the other."""
    return [Span(*both) for both in zip((0, *ends), ends, strict=False)]


def test_a_word_is_linked_to_the_one_its_subwords_looked_at_most() -> None:
    source, target = "the old house", "das alte Haus"
    source_tokens = spans(3, 7, 10, 13)  # the, old, hou, se
    target_tokens = spans(3, 6, 8, 13)  # das, al, te, Haus
    looked = [
        [0.9, 0.0, 0.0, 0.0, 0.1],
        [0.1, 0.5, 0.2, 0.2, 0.0],
        [0.0, 0.4, 0.3, 0.3, 0.0],
        [0.1, 0.0, 0.3, 0.4, 0.2],
    ]
    found = align(source, source_tokens, target, target_tokens, looked)
    assert str(found) == "0-0 2-1 2-2"
    assert [source[slice(*found.source[link.source])] for link in found.links] == ["the", "house", "house"]
    assert found.in_words() == "the=das house=alte house=Haus"
    assert [link.weight for link in found.links] == [0.9, 0.5, 0.7]


def test_who_looks_at_the_end_of_the_source_has_no_link() -> None:
    assert str(align("a b", spans(1, 3), "x y", spans(1, 3), [[0.2, 0.1, 0.7], [0.1, 0.9, 0.0]])) == "1-1"


def test_heads_that_rest_at_the_end_leave_a_word_its_link() -> None:
    """Of several heads some always do, and of the words one has most of the rest."""
    assert str(align("a b", spans(1, 3), "x", spans(1), [[0.1, 0.4, 0.3, 0.2]])) == "1-0"


def test_nothing_is_aligned_to_nothing() -> None:
    assert align("", [], "", [], []).links == ()
    assert align("", [], "x", spans(1), [[1.0]]).links == ()


@given(st.text(max_size=40))
def test_spans_of_subwords_cover_the_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tokenizer = learned(tmp_path_factory)
    ids = tokenizer.encode(normalise(text))
    spans, whole = tokenizer.spans(ids), tokenizer.decode(ids)
    assert len(spans) == len(ids)
    assert "".join(whole[begin:end] for begin, end in spans) == whole
    for token, (begin, end) in zip(ids, spans, strict=True):
        piece = tokenizer.piece(token).replace("▁", " ")
        assert piece.startswith("<0x") or whole[begin:end] == (piece.lstrip(" ") if begin == 0 else piece)


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
