"""Gettext catalogues: what has no translation gets one, and everything else stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import TextError
from qkv.files import translate_file
from tests.files.translations import loud, same

HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: en\\n"\n\n'


def in_capitals(text: str, *, again: bool = False) -> str:
    made = translate_file((HEAD + text).encode(), "a.po", loud, again=again).decode()
    assert made.startswith(HEAD)
    return made.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ('msgid "a"\nmsgstr ""\n', 'msgid "a"\nmsgstr "A"\n'),
        ('msgid "a"\nmsgstr "b"\nmsgid "c"\nmsgstr ""', 'msgid "a"\nmsgstr "b"\nmsgid "c"\nmsgstr "C"'),
        (
            '#. note\n#: a.c:1\n#, c-format\nmsgctxt "x"\nmsgid "a"\nmsgstr ""\n',
            '#. note\n#: a.c:1\n#, c-format\nmsgctxt "x"\nmsgid "a"\nmsgstr "A"\n',
        ),
        (
            'msgid "a file"\nmsgid_plural "more files"\nmsgstr[0] ""\nmsgstr[1] ""\n',
            'msgid "a file"\nmsgid_plural "more files"\nmsgstr[0] "A FILE"\nmsgstr[1] "MORE FILES"\n',
        ),
        (
            'msgid ""\n"a \\"b\\"\\n"\n"c\\n"\nmsgstr ""\n',
            'msgid ""\n"a \\"b\\"\\n"\n"c\\n"\nmsgstr ""\n"A \\"B\\"\\n"\n"C\\n"\n',
        ),
        ('#~ msgid "a"\n#~ msgstr ""\n', '#~ msgid "a"\n#~ msgstr ""\n'),
        ('#, fuzzy\nmsgid "a"\nmsgstr "b"\n', '#, fuzzy\nmsgid "a"\nmsgstr "b"\n'),
        ('msgid "<b>a</b> & c"\nmsgstr ""\n', 'msgid "<b>a</b> & c"\nmsgstr "<B>A</B> & C"\n'),
    ],
)
def test_what_is_missing_is_translated(text: str, translation: str) -> None:
    assert in_capitals(text) == translation


@pytest.mark.parametrize(("line", "target", "told"), [("Language: en", "pt-BR", "pt_BR"), ("Language: ", "fr", "fr")])
def test_the_head_says_the_new_language(line: str, target: str, told: str) -> None:
    head = f'msgid ""\nmsgstr ""\n"{line}\\n"\n"Language-Team: Language: none\\n"\n\n'
    entry = 'msgid "Language: en"\nmsgstr "Language: en"\n'
    made = translate_file((head + entry).encode(), "a.po", same, source="en", target=target).decode()
    assert made == head.replace(f'"{line}\\n', f'"Language: {told}\\n') + entry


def test_what_is_there_is_translated_where_that_is_wanted() -> None:
    assert in_capitals('msgid "a"\nmsgstr "b"\n', again=True) == 'msgid "a"\nmsgstr "A"\n'


@pytest.mark.parametrize(
    ("source", "translation", "fits"),
    [
        ("%s of %d", "%d von %s", False),
        ("%1$s of %2$d", "%2$d von %1$s", True),
        ("{name} and {other}", "{other} und {name}", True),
        ("{} and {name}", "{name} und {}", True),
        ("%(name)s left", "{name} ging", False),
        ("%d files", "Dateien", False),
        ("50 %% done", "50 % fertig", True),
        ("plain", "mit %s", False),
    ],
)
def test_a_translation_that_would_break_a_program_is_left_out(source: str, translation: str, fits: bool) -> None:
    made = translate_file(f'msgid "{source}"\nmsgstr ""\n'.encode(), "po", lambda _: [translation]).decode()
    assert made == f'msgid "{source}"\nmsgstr "{translation if fits else ""}"\n'


def test_the_charset_is_that_of_the_head() -> None:
    head = HEAD.replace("UTF-8", "ISO-8859-1").encode()
    made = translate_file(head + 'msgid "é"\nmsgstr ""\n'.encode("latin-1"), "a.po", loud)
    assert made == head + 'msgid "é"\nmsgstr "É"\n'.encode("latin-1")
    with pytest.raises(TextError, match="has no '€', which the translation needs; convert it"):
        translate_file(head + b'msgid "a"\nmsgstr ""\n', "a.po", lambda _: ["€"])


def test_what_is_no_catalogue_is_refused_with_its_line() -> None:
    with pytest.raises(TextError, match=r"a\.po: line 3 cannot be read: 'msgstr \"b'; check it with `msgfmt -c`"):
        translate_file(b'# x\nmsgid "a"\nmsgstr "b\n', "a.po", same)


ENTRIES = ['msgid "a"\nmsgstr "b"\n', "# c\n", "\n", '#~ msgid "a"\n', 'msgid ""\nmsgstr ""\n"x: y\\n"\n', "\r\n"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(ENTRIES)).map("".join))
def test_nothing_changes_where_nothing_is_missing(text: str) -> None:
    assert translate_file(text.encode(), "po", loud) == text.encode()
