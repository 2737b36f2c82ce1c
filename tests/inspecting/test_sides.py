"""Which tokens make which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv.inspecting.sides import Side, aligned_words, side
from qkv.text.alignment import Alignment, Link
from qkv.text.subwords import Tokenizer
from qkv.text.words import words


@pytest.fixture
def tokenizer(toy_data: Path) -> Tokenizer:
    return Tokenizer.load(toy_data / "tokenizer.model")


def shown(tokenizer: Tokenizer, text: str) -> Side:
    return side(tokenizer, [*tokenizer.encode(text), tokenizer.end])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it didn't, it's", ["it", "didn't", ",", "it's"]),
        ("l'animal d’un", ["l'", "animal", "d’", "un"]),
        ("the 'so' called", ["the", "'", "so", "'", "called"]),
        ("née 東京 x", ["née", "東", "京", "x"]),
        ("", []),
    ],
)
def test_words_are_what_a_reader_takes_for_them(tokenizer: Tokenizer, text: str, expected: list[str]) -> None:
    one = shown(tokenizer, text)
    assert (one.text, [word.text for word in one.words]) == (text, expected)
    # Whatever the vocabulary makes of them: here, most are bytes.
    places = [place for word in one.words for place in range(word.first, word.behind)]
    assert places == sorted(set(places))
    assert all(one.tokens[place].word is not None for place in places)
    # No byte and no space is left over.
    assert places == [*range(len(one.tokens) - 1)]
    assert one.tokens[-1] == ("</s>", None)


def test_tags_belong_to_no_word(tokenizer: Tokenizer) -> None:
    tag = max(tokenizer.marks)
    one = side(tokenizer, [tag, *tokenizer.encode("basa koti"), tokenizer.end])
    assert one.tokens[0] == (tokenizer.piece(tag), None)
    assert one.words[0] == ("basa", 1, one.words[1].first)


def test_links_are_those_of_the_words_that_are_shown(tokenizer: Tokenizer) -> None:
    source, target = "it didn't go", "no l'a"
    texts = source, target, tuple(words(source)), tuple(words(target))
    # The words of an alignment are it, didn, ', t, go and no, l, ', a.
    links = tuple(Link(one, other, 1.0) for one, other in ((0, 1), (1, 0), (3, 0), (4, 3)))
    found = aligned_words(Alignment(*texts, links), shown(tokenizer, source), shown(tokenizer, target))
    assert found == [[1], [0], [2]]
