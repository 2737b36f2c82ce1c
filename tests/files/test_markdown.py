"""Markdown: prose changes, and its structure does not."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qkv.files import translate_file
from tests.files.effort import LINEAR, growth
from tests.files.translations import loud, same, shuffled


def in_capitals(text: str) -> str:
    return translate_file(text.encode(), "a.md", loud).decode()


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("# one\n\ntwo *three* **four**\n", "# ONE\n\nTWO *THREE* **FOUR**\n"),
        ("one\n===\n\n- two\n  - three\n1. four\n", "ONE\n===\n\n- TWO\n  - THREE\n1. FOUR\n"),
        ("> one\n> two\n\nthree  \nfour\n", "> ONE TWO\n\nTHREE  \nFOUR\n"),
        ("use `a *b*` now\n\n```py\ncode\n```\n\n    more\n", "USE `a *b*` NOW\n\n```py\ncode\n```\n\n    more\n"),
        ('see [one](a.md "t") and ![pic](b.png) x\n', 'SEE [ONE](a.md "t") AND ![pic](b.png) X\n'),
        ("[one][a] <http://b.c> <b>two</b>\n\n[a]: d.md\n", "[ONE][a] <http://b.c> <b>TWO</b>\n\n[a]: d.md\n"),
        ("---\ntitle: one\n---\n\ntwo\n", "---\ntitle: one\n---\n\nTWO\n"),
        ("---\r\ntitle: one\r\n---\r\n\r\ntwo\r\n", "---\r\ntitle: one\r\n---\r\n\r\nTWO\r\n"),
        ("+++\ntitle = 1\n+++", "+++\ntitle = 1\n+++"),
        ("---\r\none\r\n--- two\r\n", "---\r\nONE --- TWO\r\n"),
        ("| one | two |\n|---|---|\n| three | `x` |\n", "| ONE | TWO |\n|---|---|\n| THREE | `x` |\n"),
        ("- [ ] one\n- [x] two\n", "- [ ] ONE\n- [x] TWO\n"),
        ("<div>\nasis\n</div>\n\none \\* &amp; two\r\n", "<div>\nasis\n</div>\n\nONE \\* & TWO\r\n"),
        ("two [one] three\n\n[one]: a.md\n", "TWO [one] THREE\n\n[one]: a.md\n"),
        ("| aa | a |\n|--|--|\n| b | bb |\n", "| AA | A |\n|--|--|\n| B | BB |\n"),
        ("| a \\| b | c |\n|--|--|\n| \\| c | c\t|\n", "| a \\| b | C |\n|--|--|\n| \\| c | C\t|\n"),
        ("> | a | b\n> |--|--\n> | c | d \\e\n", "> | A | B\n> |--|--\n> | C | D \\\\E\n"),
        ('[a]: x\n\n[b]( <x> "t" ) [b](x(y)\n(t)) [b]()', '[a]: x\n\n[B]( <x> "t" ) [B](x(y)\n(t)) [B]()'),
        ("snake_case and 2 * 3\n", "SNAKE_CASE AND 2 \\* 3\n"),
    ],
)
def test_what_readers_see_is_translated(text: str, translation: str) -> None:
    assert in_capitals(text) == translation


def always(told: str, texts: list[str]) -> list[str]:
    return [told for _ in texts]


def test_a_translation_begins_no_list_and_no_heading() -> None:
    for told in ("1. a", "# a", "- a", "+ a", "> a", "---"):
        made = translate_file(b"one\n", "a.md", partial(always, told.replace(">", "&gt;")))
        assert MarkdownIt().render(made.decode()).startswith("<p>"), made


def _shape(text: str) -> list[tuple[str, str]]:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [(one.type, one.content if one.type in ("fence", "code_block", "html_block") else "") for one in tokens]


@settings(max_examples=300, deadline=None)
@given(st.text("ab *_`[]()#>-+1.\n\\<&|~!\r\t", max_size=60), st.integers(0, 99))
def test_nothing_changes_where_nothing_is_translated_and_nothing_fails(text: str, seed: int) -> None:
    assert translate_file(text.encode(), "a.md", same).decode() == text
    translate_file(text.encode(), "a.md", shuffled(seed))


@pytest.mark.parametrize("line", ["a line\r\n", "--- \r\r\n", "---- \t\n", "\r\n"])
def test_a_rule_on_the_first_line_is_no_front_matter_without_end(line: str) -> None:
    # With two ways to read a line, 24 of them take seconds, and each one more takes twice as long.
    for count in (24, 2_000):
        begin = time.process_time()
        translate_file(f"---\r\n{line * count}x".encode(), "a.md", same)
        assert time.process_time() - begin < 3


@pytest.mark.parametrize(
    ("form", "unit"),
    [("[a]: x\n\n[a]({}y z", " "), ('<b{} c=">">x', "a"), ("{}", "["), ("{}", "[a]("), ("{}", "*a _b "), ("{}", "a\n")],
)
def test_time_grows_with_the_text(form: str, unit: str) -> None:
    assert growth(lambda count: form.format(unit * count).encode(), "a.md", 1_000) < LINEAR


def test_time_grows_with_the_signs_that_touch() -> None:
    def made(count: int) -> bytes:
        return f"a {'*' * count}b c{'*' * count} d".encode()

    assert growth(made, "a.md", 1_000) < LINEAR


def test_time_grows_with_the_cells_of_a_row() -> None:
    def made(count: int) -> bytes:
        return "".join(cell * count + "|\n" for cell in ("|a", "|-", "| \\| b ")).encode()

    assert growth(made, "a.md", 300) < LINEAR


def test_the_documents_of_this_project_keep_their_shape() -> None:
    for path in sorted(Path("docs").glob("*.md")):
        text = path.read_text()
        assert _shape(translate_file(text.encode(), path.name, shuffled(1)).decode()) == _shape(text), path


@pytest.mark.parametrize(
    ("text", "told", "written"),
    [
        ("the **help** button", "die <x1></x1>Hilfeschaltfläche", "die Hilfeschaltfläche"),
        ("the *project* folder", "der <x1>Projekt-</x1>Ordner", "der *Projekt-Ordner*"),
        ("the _project_ folder", "der <x1>Projekt</x1>ordner", "der _Projektordner_"),
        ("the ~~old~~ house", "la <x1>vieille </x1>maison", "la ~~vieille~~ maison"),
        ("some **more** now", "plus <x1>d'</x1>exemples", "plus **d'exemples**"),
        ("the **(new)** word", "das Wort<x1>(neu)</x1> da", "das **Wort(neu)** da"),
        ("the *one* and *two* here", "das <x1>甲</x1><x2>乙</x2> da", "das *甲乙* da"),
        ("all **the** *insurance* pays", "<x1>L'</x1><x2>assurance</x2> paie", "L'*assurance* paie"),
    ],
)
def test_emphasis_is_written_so_that_it_is_read_as_such(text: str, told: str, written: str) -> None:
    assert translate_file(text.encode(), "a.md", partial(always, told)).decode() == written


WORDS = st.lists(st.sampled_from(["Wort", "l'", "-", "„", "“", ",", " ", "(", ")", "甲", "é"]), max_size=4).map("".join)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(WORDS, min_size=9, max_size=9), st.sampled_from(["**", "*", "_", "__"]), st.sampled_from(["*", "**", "_"])
)
def test_no_sign_of_emphasis_is_read_as_text(texts: list[str], one: str, other: str) -> None:
    source = f"a {one}b{one} c {other}d *e* f{other} g ~~h~~ i"
    marks = ["<x1>", "</x1>", "<x2>", "<x3>", "</x3>", "</x2>", "<x4>", "</x4>", ""]
    told = "x " + "".join(text + mark for text, mark in zip(texts, marks, strict=True)) + " y"
    made = translate_file(source.encode(), "a.md", partial(always, told)).decode()
    tokens = MarkdownIt("commonmark").enable("strikethrough").parseInline(made)[0].children or []
    shown = "".join(token.content for token in tokens)
    assert shown == "x " + "".join(texts) + " y"
