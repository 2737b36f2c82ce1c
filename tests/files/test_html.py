"""HTML: what readers see is translated, and nothing else of a page changes."""

from __future__ import annotations

import html
import random
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import TextError
from qkv.files import translate_file
from qkv.files.html_tokens import tokens
from tests.files.effort import LINEAR, growth
from tests.files.translations import loud, same, shuffled


def in_capitals(page: str, target: str | None = None) -> str:
    return translate_file(page.encode(), "page.html", loud, target=target).decode()


@pytest.mark.parametrize(
    ("page", "translation"),
    [
        ("<p>one</p>two", "<p>ONE</p>TWO"),
        ("<p>A <b>red</b> house</p>", "<p>A <b>RED</b> HOUSE</p>"),
        ("a &lt;b&gt; &amp; c", "A &lt;B&gt; &amp; C"),
        ("2 &lt; 3 and&nbsp;more", "2 &lt; 3 AND\xa0MORE"),
        ("one\n   long\n   line", "ONE LONG LINE"),
        ("<script>let a = '<p>b</p>';</script>c", "<script>let a = '<p>b</p>';</script>C"),
        ("<style>p { a: b }</style>c", "<style>p { a: b }</style>C"),
        ("a <code>b <i>c</i></code> d", "A <code>b <i>c</i></code> D"),
        ("<pre>a</pre>b", "<pre>a</pre>B"),
        ('<p translate="no">a <p>b', '<p translate="no">a <p>B'),
        ("<ul><li class='x notranslate'>a</ul>b", "<ul><li class='x notranslate'>a</ul>B"),
        ("<div translate=no>a<div>b</div>c</div>d", "<div translate=no>a<div>b</div>c</div>D"),
        ("<!-- a -->b<!doctype html>c", "<!-- a -->B<!doctype html>C"),
        ('<img alt="a b" src="c">', '<img alt="A B" src="c">'),
        ("<a title='it&#39;s'>b</a>", "<a title='IT&#39;S'>B</a>"),
        ("<img alt=a>", '<img alt="A">'),
        ('<input placeholder="a" value="b">', '<input placeholder="A" value="b">'),
        ('<input type="submit" value="b">', '<input type="submit" value="B">'),
        ('<meta name="description" content="a">', '<meta name="description" content="A">'),
        ('<meta name="viewport" content="a">', '<meta name="viewport" content="a">'),
        ("<title>a &amp; b</title>", "<title>A &amp; B</title>"),
        ("<textarea>a</textarea>b", "<textarea>a</textarea>B"),
        ('a <i title="b">c</i> d', 'A <i title="B">C</i> D'),
        ("a</b> <i>b", "A</b> <i>B"),
        ("a < b <3 c", "A &lt; B &lt;3 C"),
        ('a <b class="', 'A <b class="'),
        ("a<br>b", "A<br>B"),
        ('<a href="x>y">b</a>', '<a href="x>y">B</a>'),
    ],
)
def test_what_readers_see_is_translated(page: str, translation: str) -> None:
    assert in_capitals(page) == translation


@pytest.mark.parametrize(
    ("page", "translation"),
    [
        ('<html lang="en"><p>a', '<html lang="fr"><p>A'),
        ("<HTML LANG=en class=b>a", '<HTML LANG="fr" class=b>A'),
        ("<html>a", '<html lang="fr">A'),
        ('<p lang="de">a', '<p lang="de">A'),
    ],
)
def test_a_page_says_its_new_language(page: str, translation: str) -> None:
    assert in_capitals(page, target="fr") == translation


def test_a_sentence_is_one_text_with_marks_in_place_of_tags() -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    translate_file(
        b"<div><b>A <i class=c>red</i><br>house</b> <p>A <img> &lt;door</div><p>A <img> &lt;door", "html", translate
    )
    assert asked == ["A <x2>red</x2><br 3/>house", "A <x1/> &lt;door"]


def test_a_page_is_written_in_the_encoding_that_it_says() -> None:
    page = '<meta charset="iso-8859-1"><p>é'.encode("latin-1")
    assert translate_file(page, "html", lambda _: ["€ à"]) == b'<meta charset="iso-8859-1"><p>&#8364; \xe0'


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (b"<p>a\n\xff", "bad.html: line 2 is not utf-8; convert it to UTF-8"),
        (b"<meta charset=nonsense>", "bad.html: it says that its encoding is 'nonsense'"),
        (b"<p>a\0b", "bad.html: it is no text"),
        (b"<b>" * 1_000_001, "bad.html: it has more than 500,000 elements; split it"),
    ],
)
def test_a_page_that_is_no_text_is_refused_by_name(page: bytes, told: str) -> None:
    with pytest.raises(TextError, match=told.replace("(", r"\(")):
        translate_file(page, "bad.html", same)


def test_a_translation_without_its_tags_is_refused() -> None:
    with pytest.raises(ValueError, match="has not the tags"):
        translate_file(b"a <b>c</b> d", "html", lambda _: ["lost"])


PIECES = [
    *"abc <>&\"'/=!-\n",
    *("<b>", "</b>", "<i title='word'>", "</i>", "<p>", "</p>", "<br>", "<img alt=word>", "<!-- c -->", "<!--", "-->"),
    *(
        "<code>",
        "</code>",
        "<script>",
        "</script>",
        "<td translate=no>",
        "</td>",
        "<li>",
        "&amp;",
        "&nbsp;",
        "&#65;",
        "&lt;",
    ),
    *(
        "word ",
        "Two words. ",
        "<title>",
        "</title>",
        "<textarea>",
        "<svg>",
        "</svg>",
        "<a href='",
        "<custom-tag/>",
        "é",
    ),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_nothing_changes_where_no_text_does(page: str) -> None:
    assert translate_file(page.encode(), "html", same).decode() == page


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(0, 99))
def test_tags_are_never_lost_and_never_invented(page: str, seed: int) -> None:
    translation = translate_file(page.encode(), "html", shuffled(seed)).decode()
    assert tags_of(translation) == tags_of(page)


def tags_of(page: str) -> Counter[str]:
    # Readers see what some attributes say.
    found = (one for one in tokens(page) if one.kind != "text" and not (one.kind == "raw" and one.name == "title"))
    return Counter(html.unescape(one.raw).lower().replace('"', "").replace("'", "") for one in found)


UNITS = [
    "<a ",
    '<a ="',
    "<!--",
    "<b>",
    "</b>",
    "<p translate=no>",
    "<code>",
    "<a b=c ",
    "&",
    "<title>",
    "</",
    "<p>",
    " ",
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["{}", "some words{}"])
def test_long_and_broken_pages_take_no_longer_than_others(form: str, unit: str) -> None:
    page = form.format(unit * 100).encode()
    assert translate_file(page, "html", same) == page
    assert growth(lambda count: form.format(unit * count).encode(), "html", 2_000) < LINEAR


def test_a_page_that_does_not_say_its_encoding_takes_no_longer_than_others() -> None:
    page = b"<meta " * 300 + b"charset=" + b" " * 2_200 + b"!"
    begin = time.process_time()
    assert translate_file(page, "html", same) == page
    assert time.process_time() - begin < 1


def test_elements_of_many_names_take_no_longer_than_others() -> None:
    def made(count: int) -> bytes:
        return f"<p translate=no>{''.join(f'<a{number}>' for number in range(count))}{'<p>' * count}".encode()

    assert growth(made, "html", 1_000) < LINEAR


def test_words_that_change_places_take_their_tags_along() -> None:
    drawn = random.Random(0)
    page = " ".join(drawn.choice(["one", "<b>two</b>", "<i>three four</i>", "<u>five</u>."]) for _ in range(40))
    translation = translate_file(page.encode(), "html", shuffled(1)).decode()
    assert translation.count("<b>TWO</b>") == page.count("<b>two</b>")
