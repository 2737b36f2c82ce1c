"""Words: whole ones in every script, and terms among them."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.errors import ConfigError
from qkv.text.words import Found, Span, Terms, term_key, words


def found(terms: list[str], text: str) -> list[str]:
    return [text[span.start : span.end] for span, _ in Terms(terms).find(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("l'animal, déjà vu", ["l", "'", "animal", ",", "déjà", "vu"]),
        ("de\u0301ja\u0300 vu", ["de\u0301ja\u0300", "vu"]),
        ("C++ x_1 3.5", ["C", "+", "+", "x_1", "3", ".", "5"]),
        ("人工 AI智能", ["人", "工", "AI", "智", "能"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
    ],
)
def test_words_are_runs_of_letters_with_their_accents(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == parts


@given(st.text())
def test_words_and_white_space_make_up_the_text(text: str) -> None:
    spans = words(text)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(one.end <= other.start for one, other in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["cat"], "Cat, CAT and concatenate cats", ["Cat", "CAT"]),
        (["Apple"], "apple Apple", ["apple", "Apple"]),
        (["NASA"], "NASA and nasa", ["NASA"]),
        (["iPhone"], "iphone iPhone", ["iPhone"]),
        (["US"], "Tell us of the US", ["US"]),
        (["hard disk", "disk", "hard"], "a hard  disk is hard", ["hard  disk", "hard"]),
        (["hard disk drive", "hard disk"], "hard disk driver", ["hard disk"]),
        (["animal"], "l'animal et l’animal", ["animal", "animal"]),
        (["aujourd'hui"], "Aujourd’hui", ["Aujourd’hui"]),
        (["café"], "cafe\u0301 CAFÉ cafe", ["cafe\u0301", "CAFÉ"]),
        (["Straße"], "STRASSE", ["STRASSE"]),
        (["e-mail"], "e-mail e - mail", ["e-mail"]),
        (["人工智能"], "用人工智能。", ["人工智能"]),
        (["C++"], "C++, not C", ["C++"]),
        (["a a"], "a a a", ["a a"]),
        ([], "nothing", []),
    ],
)
def test_terms_are_found_as_whole_words(terms: list[str], text: str, expected: list[str]) -> None:
    assert found(terms, text) == expected


@given(st.text().map(str.strip).filter(words), st.sampled_from(["", " ", "\n  "]))
def test_a_term_is_found_in_itself(term: str, before: str) -> None:
    assert (len(before), term) in [(span.start, one) for span, one in Terms([term]).find(before + term)]


def test_an_empty_term_is_refused() -> None:
    with pytest.raises(ConfigError, match="a term is empty"):
        Terms(["fine", " "])


def longest_at(text: str, spans: list[Span], place: int, terms: list[str]) -> str | None:
    """Of the terms that begin at a word, the longest, by looking at every stretch of words."""
    for last in reversed(range(place, len(spans))):
        key = term_key(text[spans[place].start : spans[last].end])
        if found := [term for term in terms if term_key(term) == key]:
            return found[0]
    return None


def test_what_is_found_is_what_looking_everywhere_finds() -> None:
    draw = random.Random(7)

    def phrase(longest: int) -> str:
        parts = (draw.choice(["a", "b", "-", "汉"]) + draw.choice(["", " ", "  "]) for _ in range(longest))
        return "".join(parts).strip()

    for _ in range(300):
        terms = [phrase(draw.randint(1, 4)) for _ in range(draw.randint(1, 6))]
        text = phrase(draw.randint(1, 12))
        spans = words(text)
        expected, place = [], 0
        while place < len(spans):
            term = longest_at(text, spans, place, terms)
            length = 1 if term is None else len(words(term))
            if term is not None:
                expected.append(Found(Span(spans[place].start, spans[place + length - 1].end), term))
            place += length
        assert Terms(terms).find(text) == expected


def test_terms_that_begin_alike_cost_no_more_than_others() -> None:
    text = "a " * 2000

    def seconds(terms: Terms) -> float:
        begun = time.process_time()
        assert terms.find(text) == []
        return time.process_time() - begun

    one = min(seconds(Terms(["a b"])) for _ in range(5))
    many = min(seconds(Terms("a " * length + "b" for length in range(1, 400))) for _ in range(2))
    assert many < 20 * one
