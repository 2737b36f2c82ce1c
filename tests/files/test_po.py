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


@pytest.mark.parametrize(
    ("written", "charset", "read"),
    [
        (r"caf\303\251 open", "UTF-8", "café open"),
        (r"caf\xc3\xA9 open", "UTF-8", "café open"),
        (r"caf\303" '"\n"' r"\251 open", "UTF-8", "café open"),
        (r"caf\351 open", "ISO-8859-1", "café open"),
        (r"\x94\x4c cat", "Shift_JIS", "猫 cat"),
        # As `msgfmt` has it: three octal digits at most, hexadecimal ones without end, and the last eight bits count.
        (r"\1012 \x004b \541", "UTF-8", "A2 K a"),
    ],
)
def test_escapes_with_numbers_are_bytes(written: str, charset: str, read: str) -> None:
    asked: list[str] = []

    def noted(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    head = HEAD.replace("UTF-8", charset)
    translate_file(f'{head}msgid "{written}"\nmsgstr ""\n'.encode(), "a.po", noted)
    assert asked == [read]


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-32"])
def test_escapes_of_a_catalogue_with_a_byte_order_mark_are_utf_8(mark: str) -> None:
    text = r'msgid "caf\303\251"' + '\nmsgstr "{}"\n'
    made = translate_file(text.format("").encode(mark), "a.po", loud)
    assert made.decode(mark) == text.format("CAFÉ")


@pytest.mark.parametrize("written", [r"caf\303 open", r"caf\351", r"a\0b", r"\xff a"])
def test_an_entry_whose_bytes_are_no_text_stays_as_it_is(written: str) -> None:
    """A program finds it by these very bytes, and nobody could tell what it says."""
    for text in (
        f'msgid "{written}"\nmsgstr ""\n',
        f'msgid "{written}"\nmsgid_plural "more"\nmsgstr[0] ""\nmsgstr[1] ""\n',
        f'msgid "one"\nmsgid_plural "{written}"\nmsgstr[0] ""\nmsgstr[1] ""\n',
        f'msgid "one"\nmsgstr "{written}"\n',
    ):
        assert in_capitals(text) == text
        assert in_capitals(text + 'msgid "a"\nmsgstr ""\n') == text + 'msgid "a"\nmsgstr "A"\n'


def test_what_is_no_catalogue_is_refused_with_its_line() -> None:
    with pytest.raises(TextError, match=r"a\.po: line 3 cannot be read: 'msgstr \"b'; check it with `msgfmt -c`"):
        translate_file(b'# x\nmsgid "a"\nmsgstr "b\n', "a.po", same)


ENTRIES = ['msgid "a"\nmsgstr "b"\n', "# c\n", "\n", '#~ msgid "a"\n', 'msgid ""\nmsgstr ""\n"x: y\\n"\n', "\r\n"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(ENTRIES)).map("".join))
def test_nothing_changes_where_nothing_is_missing(text: str) -> None:
    assert translate_file(text.encode(), "po", loud) == text.encode()
