"""Marks are made plain or printed, and everything else of a text stays where it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.text.languages import language as language_code
from qkv.text.letters import Capitals, WithCapital
from qkv.text.typography import Style, double_marks, is_printed, marks, mixture, plain, settled, spellings
from qkv.text.words import Span, words

TEXTS = st.text(alphabet="ab7 ,.-()\n\u00a0\u202f`<>{}'\"’‘‚“”„«»‹›")
LANGUAGES = st.sampled_from(["de", "fr", "en", "pl", "xx", None])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s the ‘best’.", "It's the 'best'."),
        ("He said “no”.", 'He said "no".'),
        ("Er sagte „nein“ und »ja« dazu.", 'Er sagte "nein" und "ja" dazu.'),
        ("Il dit « non », l’autre « oui ».", 'Il dit "non", l\'autre "oui".'),
        ("Il dit «\u00a0non\u00a0» !", 'Il dit "non" !'),
        ("5' 3\" is plain", "5' 3\" is plain"),
        ("", ""),
    ],
)
def test_plain_text_has_a_typewriters_marks(text: str, expected: str) -> None:
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", '"It\'s mine", he said.', "“It’s mine”, he said."),
        ("de", 'Er sagte: "Nein", und ("ja").', "Er sagte: „Nein“, und („ja“)."),
        (language_code("de-AT"), '"Nein"', "„Nein“"),
        (language_code("de-CH"), '"Nein"', "«Nein»"),
        (language_code("fr-CA"), '"Non"', "«\u00a0Non\u00a0»"),
        ("fr", '"L\'ami", dit-il.', "«\u00a0L’ami\u00a0», dit-il."),
        ("es", '"No"', "«No»"),
        (None, '"No"', "“No”"),
        # What is printed already comes out as the language prints it.
        ("de", "Er sagte “nein”, « ja ».", "Er sagte „nein“, „ja“."),
        # Of single quotation marks the second looks like an apostrophe: neither is touched.
        ("en", "the 'best' of John's", "the 'best' of John’s"),
        ("en", "\"'No', it's said\"", "“'No', it’s said”"),
        ("en", "5' tall", "5' tall"),
        ("de", 'Er sagte:"Nein".', "Er sagte:„Nein“."),
        ("de", '<b>"Der König"</b> **"sagt"**', "<b>„Der König“</b> **„sagt“**"),
        ("es", '¿"Qué"?', "¿«Qué»?"),
        # What is no quotation stays as it is.
        ("fr", "un écran de 27\", n'est-ce pas", 'un écran de 27", n’est-ce pas'),
        ("de", 'ein 27"-Monitor, ein 27-"Monitor', 'ein 27"-Monitor, ein 27-"Monitor'),
        ("de", '<a href="x" title=\'"y"\'>', '<a href="x" title=\'"y"\'>'),
        ("de", 'Ruf print("hallo") auf.', 'Ruf print("hallo") auf.'),
        ("de", '"Ruf open("x", "r") auf", f(\'y\') geht\'s', '„Ruf open("x", "r") auf“, f(\'y\') geht’s'),
        ("fr", '"si a<b, ce n\'est pas {ok", dit-il', "«\u00a0si a<b, ce n’est pas {ok\u00a0», dit-il"),
        ("de", 'Das JSON {"a": "b", "c": 5} hier', 'Das JSON {"a": "b", "c": 5} hier'),
        ("de", 'Tipp `say "a"`, dann "b".', 'Tipp `say "a"`, dann „b“.'),
        ("fr", '" "" "', '" "" "'),
    ],
)
def test_a_printed_style_has_the_marks_of_its_language(language: str | None, text: str, expected: str) -> None:
    assert Style(printed=True, language=language).write(text).text == expected


def test_what_is_spared_stays_as_it_is() -> None:
    spared = ('print("it\'s")', "l’État")
    assert Style(printed=True, language="de", spared=spared).write('"Ruf print("it\'s") auf", sagt\'s').text == (
        '„Ruf print("it\'s") auf“, sagt’s'
    )
    assert Style(printed=False, spared=spared).write("C’est l’État").text == "C'est l’État"


@given(text=TEXTS, printed=st.booleans(), language=LANGUAGES)
def test_what_was_printed_is_plain_again(text: str, printed: bool, language: str | None) -> None:
    assert plain(Style(printed, language).write(text).text) == plain(text)


@given(begun=TEXTS, more=TEXTS, printed=st.booleans(), language=LANGUAGES)
def test_what_a_text_begins_with_stays_as_it_is_given(
    begun: str, more: str, printed: bool, language: str | None
) -> None:
    style = Style(printed, language, begun=begun)
    whole = plain(begun) + more
    edited = style.write(whole)
    assert edited.text.startswith(begun)
    assert len(edited.places) == len(whole) + 1
    assert sorted(edited.places) == [*edited.places]
    assert edited.places[-1] == len(edited.text)
    for place in range(len(whole)):
        assert edited.text.startswith(settled(style.write(whole[:place]).text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He said: 'Come.'", 'He said: "Come."'),
        ("'Don't come', she said, 'it's late.'", '"Don\'t come", she said, "it\'s late."'),
        ("The students' 'free' books ('new')", 'The students\' "free" books ("new")'),
        ("It says 'that workers' rights are respected'.", 'It says "that workers\' rights are respected".'),
        ("'citizens' rights and those of States'", '"citizens\' rights and those of States"'),
        ("'books' are good", '"books" are good'),
        ("'%s' is no 'directory', '1984' and '... so on'", '"%s" is no "directory", "1984" and "... so on"'),
        ("He said: \"Come, 'Ann'.\"", "He said: \"Come, 'Ann'.\""),
        (
            "the '90s, geht's, l'ami, 5' long, 'tis rock 'n' roll",
            "the '90s, geht's, l'ami, 5' long, 'tis rock 'n' roll",
        ),
        ("`say 'a'`, print('b') {'c': 1}", "`say 'a'`, print('b') {'c': 1}"),
        ("'I came.", "'I came."),
        ("I saw.'", "I saw.'"),
    ],
)
def test_single_quotations_become_double_and_apostrophes_stay(text: str, expected: str) -> None:
    assert Style(printed=False, double=2).write(text).text == expected
    assert Style(printed=False).write(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'I came.", '"I came.'),
        ("I saw.'", 'I saw."'),
        ("The Member States must act'.", 'The Member States must act".'),
        ("'The workers' rights matter.", "\"The workers' rights matter."),
        ("the workers' rights", "the workers' rights"),
        ("I saw.' And 'he' came.", 'I saw." And "he" came.'),
    ],
)
def test_a_part_of_a_quotation_has_its_begin_or_its_end(text: str, expected: str) -> None:
    assert Style(printed=False, double=1).write(text).text == expected


def test_double_quotations_are_printed_as_such() -> None:
    assert Style(printed=True, language="fr", double=2).write("Il dit: 'C'est tard.'").text == (
        "Il dit: «\u00a0C’est tard.\u00a0»"
    )
    assert Style(printed=False, spared=("'a'",), double=2).write("'a' and 'b'").text == "'a' and \"b\""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Er sagte: "Komm."', 2),
        ("„Komm“, sagte er, „ich hab’s.“", 4),
        ('"I came.', 1),
        ("l'ami, the students' \"books\"", 2),
        ("Er sagte: 'Komm.'", 0),
        ("“He said: ‘Come.’”", 0),
        ("'%s' is no \"directory\"", 0),
        ("I saw.' \"", 0),
        ('it\'s late, 27", print("a"), `"`', 0),
    ],
)
def test_double_marks_are_counted_where_a_quotation_has_no_others(text: str, expected: int) -> None:
    assert double_marks(text) == expected


def test_a_stream_waits_where_single_marks_may_become_double() -> None:
    text = "Don't say 'that'."
    assert Style(printed=False).decided(text) == len(text)
    assert text[: Style(printed=False, double=2).decided(text)] == "Don't say "
    assert text[: Capitals(Style(printed=False, double=2)).decided(text)] == "Don't say "
    assert Capitals().decided(text) == WithCapital().decided(text) == len(text)


def test_a_text_that_begins_otherwise_is_written_as_any_other() -> None:
    assert Style(printed=False, begun="« Oui »").write("« Non »").text == '"Non"'


def test_all_ways_to_write_marks_are_known() -> None:
    assert {"l'ami", "l’ami", "l‘ami"} <= {*spellings("l’ami")} == {*spellings("l'ami")}
    assert {'"a"', "“a”", "„a“", "« a »", "«a»"} <= {*spellings("« a »")}
    assert {'"', "“", "”", "„", "«", "»"} <= {*spellings('"')}
    assert {"'no'", "‘no’", "‚no‘", "‹no›", "’no’"} <= {*spellings("'no'")} == {*spellings("‘no’")}
    assert {'f("a")', "f(“a”)", "f(« a »)"} <= {*spellings('f("a")')}
    assert "“l’ami”" in spellings('"l\'ami"')
    assert spellings("ami") == ["ami"]


@given(text=TEXTS)
def test_plain_text_is_not_printed_and_has_the_same_words(text: str) -> None:
    assert not is_printed(plain(text))
    assert plain(plain(text)) == plain(text)
    assert len(words(plain(text))) == len(words(text))


@given(text=TEXTS, printed=st.booleans(), language=LANGUAGES, double=st.integers(0, 3))
def test_every_word_is_where_its_place_says(text: str, printed: bool, language: str | None, double: int) -> None:
    edited = Style(printed, language, double=double).write(text)
    assert len(edited.places) == len(text) + 1
    assert (edited.places[0], edited.places[-1]) == (0, len(edited.text))
    assert sorted(edited.places) == [*edited.places]
    for before, after in zip(words(text), words(edited.text), strict=True):
        moved = edited.moved(before)
        assert moved.start <= after.start and after.end <= moved.end
        if text[before.start].isalnum():
            assert edited.text[moved.start : moved.end] == text[before.start : before.end]


@given(text=TEXTS, more=TEXTS, printed=st.booleans(), language=LANGUAGES, double=st.integers(0, 3))
def test_what_is_settled_stays_whatever_comes(
    text: str, more: str, printed: bool, language: str | None, double: int
) -> None:
    style = Style(printed, language, double=double)
    known = text[: style.decided(text)]
    assert known == text or double
    assert style.write(text + more).text.startswith(settled(style.write(known).text))


def test_an_empty_part_of_a_text_stays_empty() -> None:
    edited = Style(printed=True, language="fr").write('a "b"')
    assert edited.moved(Span(2, 2)) == Span(2, 2)
    assert edited.moved(Span(5, 5)) == Span(len(edited.text), len(edited.text))


def test_a_mixture_is_told_only_where_both_kinds_are_frequent() -> None:
    found = marks("it's l’ami " * 100 + '"a" ' * 100 + "“b” ")
    assert found == {"'": 100, "’": 100, '"': 200, "„ “ «": 2}
    assert mixture(found) == ["' (50 %) and ’ (50 %)"]
    assert mixture({"'": 49, "’": 49}) == []
    assert mixture({"'": 10_000, "’": 500}) == []
    assert mixture({'"': 900, "„ “ «": 100}) == ['" (90 %) and „ “ « (10 %)']
