"""Subtitles: times and settings stay, lines too, and a sentence over several cues is translated whole."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.files import translate_file
from tests.files.effort import LINEAR, growth
from tests.files.translations import loud, same, shuffled


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        (
            "1\n00:00:01,000 --> 00:00:02,000\nHello\nthere.\n\n2\n00:00:03,000 --> 00:00:04,000 X1:1\n<i>Bye.</i>\n",
            "1\n00:00:01,000 --> 00:00:02,000\nHELLO\nTHERE.\n\n2\n00:00:03,000 --> 00:00:04,000 X1:1\n<i>BYE.</i>\n",
        ),
        ("1\r\n0 --> 1\r\na <b>red</b>\r\nhouse\r\n\r\n", "1\r\n0 --> 1\r\nA <b>RED</b>\r\nHOUSE\r\n\r\n"),
        ("1\n0 --> 1\n- Yes?\n- No!", "1\n0 --> 1\n- YES?\n- NO!"),
        ("1\n0 --> 1\n{\\an8}Up here.", "1\n0 --> 1\n{\\an8}UP HERE."),
        ("1\n0 --> 1\n{\\an8}an", "1\n0 --> 1\n{\\an8}AN"),
        ("1\n0 --> 1\n {\\an8} <b> b\n</b> \n", "1\n0 --> 1\n {\\an8} <b> B\n</b> \n"),
        ("1\n0 --> 1\n\n2\n1 --> 2\nb", "1\n0 --> 1\n\n2\n1 --> 2\nB"),
        ("1\n0 --> 1\na < b & c", "1\n0 --> 1\nA < B & C"),
    ],
)
def test_subrip(text: str, translation: str) -> None:
    assert translate_file(text.encode(), "a.srt", loud).decode() == translation


def test_webvtt_keeps_notes_styles_settings_and_entities() -> None:
    text = (
        "WEBVTT - title\n\nNOTE a note\n\nSTYLE\n::cue { color: red }\n\nid\n00:01.000 --> 00:02.000 align:start\n"
        "<v Ann>Fish &amp; <c.big>chips</c>\n\n00:03.000 --> 00:04.000\nend\n"
    )
    made = text.replace("Fish &amp; <c.big>chips", "FISH &amp; <c.big>CHIPS").replace("end\n", "END\n")
    assert translate_file(text.encode(), "a.vtt", loud).decode() == made


def test_a_sentence_over_several_cues_is_translated_whole_and_shared_out() -> None:
    text = "1\n0 --> 1\nI went to\n\n2\n1 --> 2\nthe house over\nthere, and then home.\n\n3\n2 --> 3\nNext.\n"
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return ["Je suis allé à la maison là-bas, puis chez moi.", "Suivant."]

    made = translate_file(text.encode(), "a.srt", translate).decode()
    assert asked == ["I went to the house over there, and then home.", "Next."]
    assert made == (
        "1\n0 --> 1\nJe suis\n\n2\n1 --> 2\nallé à la maison là-bas,\npuis chez moi.\n\n3\n2 --> 3\nSuivant.\n"
    )


CUES = [
    "Two words.",
    "going on",
    "and so",
    "<i>all of it</i>",
    "a <b>b</b> c",
    "- One.\n- Two.",
    "",
    "{\\an8}x",
    "long\nlines",
]
FILES = st.lists(st.sampled_from(CUES)).map(
    lambda cues: "\n\n".join(f"{number}\n0:{number} --> 0:{number + 1}\n{cue}" for number, cue in enumerate(cues))
)


@pytest.mark.parametrize(
    ("first", "together"),
    [
        ("I went", True),
        ("I went.", False),
        ("He: «Go!»", False),
        ("(I went)", False),
        ("I went'", True),
        ("[I]'", False),
    ],
)
def test_a_sentence_that_ends_does_not_go_on(first: str, *, together: bool) -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    translate_file(f"1\n0 --> 1\n{first}\n\n2\n1 --> 2\nand so on".encode(), "a.srt", translate)
    assert asked == ([f"{first} and so on"] if together else [first, "and so on"])


@settings(deadline=None)
@given(FILES, st.sampled_from(["srt", "vtt"]))
def test_nothing_changes_where_no_text_does(text: str, kind: str) -> None:
    assert translate_file(text.encode(), kind, same).decode() == text


@settings(deadline=None)
@given(FILES, st.integers(0, 99))
def test_times_and_tags_are_never_lost_and_never_invented(text: str, seed: int) -> None:
    made = translate_file(text.encode(), "srt", shuffled(seed)).decode()
    for pattern in (r"^\d+\n.* --> .*$", r"</?[a-z]>|\{[^}]*\}"):
        assert sorted(re.findall(pattern, made, re.MULTILINE)) == sorted(re.findall(pattern, text, re.MULTILINE))
    assert sorted(letters(made)) == sorted(letters(text))


def letters(text: str) -> str:
    return "".join(text.lower().split())


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        *[
            ("{}a", "{\\a}"),
            ("{}a", "<v Ann>"),
            ("<{}", "a"),
            ("</{}", "a"),
            ("{}x", ")"),
            ("a{}", "<"),
            ("a{}", "{\\"),
        ],
        *[("a{}b", " "), ("a{}b", "\t\n"), ("-{}", " "), ("{}a", "-->")],
    ],
)
def test_time_grows_with_a_cue(form: str, unit: str) -> None:
    def made(count: int) -> bytes:
        return f"1\n0 --> 1\n{form.format(unit * count)}\n\n2\n1 --> 2\nand so on".encode()

    assert growth(made, "a.srt", 4_000) < LINEAR


def test_time_grows_with_the_tags_around_a_cue() -> None:
    # Long ones: what is copied again and again shows sooner.
    tag = "{\\" + "a" * 500 + "}"
    assert growth(lambda count: f"1\n0 --> 1\n{tag * count}up here".encode(), "a.srt", 3_000) < LINEAR


def test_a_cue_of_any_length_takes_no_longer_than_others() -> None:
    text = "1\n0 --> 1\n" + "some words\n" * 20_000
    begin = time.process_time()
    assert len(translate_file(text.encode(), "srt", loud)) == len(text)
    assert time.process_time() - begin < 3
