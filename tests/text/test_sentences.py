"""Splitting: the sentences of many languages, no character lost, and no text that takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qkv.text.sentences import Pieces, split
from tests.text.sentence_cases import CASES

LANGUAGES = [None, "en", "de", "fr", "it", "es", "nl", "pt", "ru", "el", "zh", "xx"]
# What the rules look at comes up often, so that they meet in ways nobody thought of.
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet=" \n\r\t\u2028\u3000.…!?;,。！？．」»”\"'([)]-1aAzB。z\u0301\u200d\ud800\U0001f600"),
    st.lists(st.sampled_from(["Mr.", "z. B.", "etc.", "3.", "Oktober", "He", " ", "\n", "「", "。」", "b)"])).map(
        "".join
    ),
)
SECONDS = 30
"""Ten times what the slowest takes on a busy machine; a rule that is not linear would take hours."""


@pytest.mark.parametrize(("language", "text"), CASES)
def test_sentences_end_where_a_reader_says(language: str, text: str) -> None:
    assert [*split(text.replace("|", ""), language).sentences] == [sentence.strip() for sentence in text.split("|")]


def test_every_language_is_tried_more_than_once() -> None:
    tried = [language for language, _ in CASES]
    assert len(CASES) >= 60
    assert all(tried.count(language) >= 5 for language in ("en", "de", "fr", "it", "es", "nl", "pt", "zh", "ja"))


def test_a_shortened_name_does_not_begin_a_sentence_by_its_first_letters() -> None:
    assert split("By J. Is. Newton", "en").sentences[0] == "By J. Is."


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_joining_what_was_split_gives_the_text(text: str, language: str | None) -> None:
    pieces = split(text, language)
    assert pieces.join(pieces.sentences) == text
    assert "".join(part for pair in zip(pieces.gaps, (*pieces.sentences, ""), strict=True) for part in pair) == text


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_a_sentence_is_visible_at_both_ends_and_never_spans_lines(text: str, language: str | None) -> None:
    for sentence in split(text, language).sentences:
        assert sentence and sentence == sentence.strip()
        assert len(sentence.splitlines()) == 1


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_gaps_are_white_space_alone(text: str, language: str | None) -> None:
    assert not "".join(split(text, language).gaps).strip()


@given(TEXTS, st.integers(1, 9))
@example("a" * 40, 3)
@example("e" + "\u0301" * 90, 7)
def test_cutting_loses_nothing_and_fits(text: str, limit: int) -> None:
    pieces = split(text, "en").within(limit, len)
    assert pieces.join(pieces.sentences) == text
    assert all(0 < len(sentence) <= limit and sentence == sentence.strip() for sentence in pieces.sentences)


def test_a_part_fits_even_where_a_shorter_text_measures_more() -> None:
    def measure(text: str) -> int:
        return len(text) + 7 * (not text.endswith("c"))

    pieces = split("abc abc abc abc abc abc abc abc abc abc ab", None).within(16, measure)
    assert max(map(measure, pieces.sentences)) <= 16


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("one two four; three, four five six", ["one two four;", "three, four five", "six"]),
        ("one two three, four five six", ["one two three,", "four five six"]),
        ("one two three four five six", ["one two three", "four five six"]),
        ("一二三四五六七八，九十一二三四五六七八", ["一二三四五六七八，", "九十一二三四五六七八"]),
        ("see http://a.b/c,d;e and more", ["see", "http://a.b/c,d;e", "and more"]),
        ("a" * 33, ["a" * 16, "a" * 16, "a"]),
    ],
)
def test_long_sentences_are_cut_at_the_best_place(sentence: str, parts: list[str]) -> None:
    assert [*split(sentence, None).within(16, len).sentences] == parts


def test_white_space_stays_where_it_was() -> None:
    pieces = split("  Title\r\n\r\n\tOne.  Two.\n \nThree. \n", "en")
    assert pieces.sentences == ("Title", "One.", "Two.", "Three.")
    assert pieces.join(["T", "1.", "2.", "3."]) == "  T\r\n\r\n\t1.  2.\n \n3. \n"


def test_scripts_with_and_without_spaces_meet() -> None:
    assert split("你好。再见。", "zh").join(["Hello.", "Goodbye."]) == "Hello. Goodbye."
    assert split("他说：“我不去。”然后就走了。", "zh").join(["“No.”", "He left."]) == "“No.” He left."
    assert split("Hello. Goodbye.", "en").join(["你好。", "再见。"]) == "你好。再见。"
    assert split("Hello. Goodbye.", "en").join(["안녕.", "잘 가."]) == "안녕. 잘 가."
    assert split("Hello.\nGoodbye.", "en").join(["你好。", "再见。"]) == "你好。\n再见。"


@given(TEXTS, st.data())
def test_spans_tell_where_sentences_are(text: str, data: st.DataObject) -> None:
    pieces = split(text, None)
    count = len(pieces.sentences)
    translations = data.draw(st.lists(st.text(), min_size=count, max_size=count))
    joined = pieces.join(translations)
    for (start, end), translation in zip(pieces.spans(translations), translations, strict=True):
        assert joined[start:end] == translation


def test_as_many_sentences_come_back_as_went_out() -> None:
    with pytest.raises(ValueError, match="1 sentences for 2 places"):
        split("One. Two.", "en").join(["Eins."])


def test_sentences_end_only_where_they_may() -> None:
    text = "A long\nline. Then\n\nmore"
    assert split(text, "en").sentences == ("A long", "line.", "Then", "more")
    assert split(text, "en", ends="marks").sentences == ("A long\nline.", "Then\n\nmore")
    assert split(text, "en", ends="nowhere").sentences == (text,)
    assert split(" ", "en", ends="nowhere").sentences == ()


def test_sentences_end_at_given_places_too() -> None:
    pieces = split("Hours open now. Bye", "en", breaks=[0, 5, 5, 19])
    assert (pieces.sentences, pieces.gaps) == (("Hours", "open now.", "Bye"), ("", " ", " ", ""))
    assert split("One. Two. Three", "en", ends="nowhere", breaks=[9]).sentences == ("One. Two.", "Three")


def test_nothing_is_no_sentence() -> None:
    assert split("", "en") == Pieces((), ("",))
    assert split(" \n ", "en") == Pieces((), (" \n ",))


@pytest.mark.parametrize("language", ["de-AT", "DE", "de_CH"])
def test_a_language_is_known_by_its_first_part(language: str) -> None:
    assert split("Am 3. Oktober.", language).sentences == ("Am 3. Oktober.",)


@pytest.mark.parametrize(
    "hostile",
    [*'."? \n…。「»1', ". ", '."', "a.", "1. ", "( ", "! »", ".[1]", ".[", "z. B. ", "a; ", "\u0301", "\ud800"],
)
def test_time_is_linear_whatever_the_text(hostile: str) -> None:
    text = hostile * (1_000_000 // len(hostile))
    started = time.process_time()
    pieces = split(text, "de").within(200, len)
    assert time.process_time() - started < SECONDS
    assert pieces.join(pieces.sentences) == text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("- One.\n- Two.\n– Three.", ["One.", "Two.", "Three."]),
        ("(a) One. (b) Two.", ["One.", "Two."]),
        ("1) One\niv) Two\n* Three\n• Four", ["One", "Two", "Three", "Four"]),
        ("- 5 degrees\n1. Mai\na dog\n-x", ["- 5 degrees", "1. Mai", "a dog", "-x"]),
        ("One.\n\n***\n\n€ 5,00\nTwo.", ["One.", "Two."]),
        ("12\n1:2\n!!!", ["12"]),
        ("1:2", []),
    ],
)
def test_what_has_no_words_stands_between_sentences(text: str, sentences: list[str]) -> None:
    pieces = split(text, "en").in_words()
    assert [*pieces.sentences] == sentences
    assert pieces.join(pieces.sentences) == text
    assert pieces.in_words() == pieces


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_sentences_of_words_lose_nothing(text: str, language: str | None) -> None:
    pieces = split(text, language).in_words()
    assert pieces.join(pieces.sentences) == text
    assert all(one == one.strip() and any(map(str.isalnum, one)) for one in pieces.sentences)
