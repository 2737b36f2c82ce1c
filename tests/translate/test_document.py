"""Text of any length goes through, and keeps its shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from qkv import Translator
from qkv.engines.heads import learn_looks
from qkv.engines.load import load_run
from qkv.errors import RuleError
from qkv.prepare import Prepared
from qkv.translate import Terms, translate_document
from tests import toy
from tests.toy import Command


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    loaded = load_run(toy_run, "cpu")
    data = Prepared.open(toy_run / "data")
    return Translator.of(*loaded._replace(looks=learn_looks(loaded, data.corpus("train"), data.corpus("valid"))))


def test_white_space_stays_as_it_was(translator: Translator) -> None:
    text = "\n  basa kodu\n\n\tlumo riti nesa  \r\nkodu\n\n"
    assert translate_document(translator, text).text == "\n  udok asab\n\n\tasen itir omul  \r\nudok\n\n"


@pytest.mark.parametrize("text", ["", "\n", "   ", "\n\n \t\n"])
def test_what_says_nothing_stays_as_it_is(translator: Translator, text: str) -> None:
    found = translate_document(translator, text)
    assert (found.text, found.sentences) == (text, ())


def test_a_sentence_over_the_limit_loses_nothing(toy_run: Path) -> None:
    loaded = load_run(toy_run, "cpu")
    warnings: list[str] = []
    config = loaded.config.with_changes(search={"longest_source": 9})
    small = Translator.of(loaded.model, loaded.tokenizer, config)
    words = [word for source, _ in toy.held_out()[:12] for word in source.split()]
    found = translate_document(small, " ".join(words), beam=1)
    assert len(found.sentences) > 5
    assert all(small.measure(sentence) < 9 for sentence in found.sentences)
    assert " ".join(found.sentences).split() == words
    assert warnings == []
    # Each part is read backwards, the parts follow one another.
    expected = " ".join(" ".join(sentence.split())[::-1] for sentence in found.sentences)
    right = [a == b for a, b in zip(found.text.split(), expected.split(), strict=False)]
    assert sum(right) / len(right) > 0.8


def test_documents_are_cut_where_the_model_has_not_learned_from_longer_sentences(toy_run: Path) -> None:
    """Of a sentence longer than any it has seen, a model leaves parts out, long before the limit of what it reads."""
    loaded = load_run(toy_run, "cpu")
    translator = Translator.of(loaded.model, loaded.tokenizer, loaded.config)
    words = [word for source, _ in toy.held_out()[:12] for word in source.split()]
    assert translator.measure(" ".join(words)) > loaded.config.data.row_width
    found = translate_document(translator, " ".join(words), beam=1)
    assert all(translator.measure(sentence) < loaded.config.data.row_width for sentence in found.sentences)
    assert " ".join(found.sentences).split() == words


def test_the_command_line_tells_of_lines_that_should_be_a_document(command: Command, toy_run: Path) -> None:
    given = b"basa\n" + b"basa kodu " * 40 + b"\n"
    most = load_run(toy_run, "cpu").config.row_width - 1
    told = command("translate", toy_run, "--beam", 1, "--whole-lines", given=given).err
    assert f"line 2: longer than the {most} tokens that the model has learned from; give it a sentence" in told
    assert "has learned from" not in command("translate", toy_run, "--beam", 1, "--document", given=given).err


def test_tags_go_where_their_words_went(translator: Translator) -> None:
    found = translate_document(translator, "<p>basa <b>kodu</b> lumo</p>\n<i>riti</i> nesa<br/>", tags=True)
    assert found.text == "<p>omul <b>udok</b> asab</p>\nasen <i>itir</i><br/>"


def test_each_sentence_keeps_to_its_terms(translator: Translator) -> None:
    asked: list[str] = []

    def terms(sentence: str) -> Terms:
        asked.append(sentence)
        return Terms(required=(("tisa",),)) if "kodu" in sentence else Terms()

    found = translate_document(translator, "basa kodu\nlumo riti", terms=terms)
    first, second = found.text.split("\n")
    assert asked == ["basa kodu", "lumo riti"]
    assert "tisa" in first.split()
    assert second == "itir omul"


def test_a_sentence_that_cannot_keep_to_its_terms_is_told_by_how_it_begins(translator: Translator) -> None:
    def terms(sentence: str) -> Terms:
        return Terms(required=(("asab",),), forbidden=("asab",)) if sentence.startswith("nesa") else Terms()

    long = "nesa " + "basa kodu " * 9 + "lumo."
    told = f"the sentence that begins '{long[:40]}': no translation has all that was asked for"
    with pytest.raises(RuleError, match=told):
        translate_document(translator, f"basa. kodu.\n\nlumo. {long}", terms=terms)


def test_the_command_line_tells_which_sentence_of_a_document_is_meant(command: Command, toy_run: Path) -> None:
    ran = command("translate", toy_run, "--document", "--min-length", 5000, given=b"\n\nbasa kodu.\n")
    assert (ran.code, ran.out) == (2, b"")
    assert "error: the sentence that begins 'basa kodu.': no translation has all" in ran.err


def test_the_command_line_translates_paragraphs(command: Command, toy_run: Path) -> None:
    given = b"basa kodu\n\n  lumo riti\n"
    ran = command("translate", toy_run, "--document", "--beam", 1, given=given)
    assert (ran.code, ran.out.decode()) == (0, "udok asab\n\n  itir omul\n")
    tagged = command("translate", toy_run, "--document", "--tags", given=b"<p>basa</p>\n")
    assert tagged.out.decode() == "<p>asab</p>\n"


def test_the_command_line_leaves_white_space_as_it_was(command: Command, toy_run: Path) -> None:
    given = b"basa kodu\r\nlumo riti\t\r\n \r\nbasa"
    ran = command("translate", toy_run, "--document", "--beam", 1, given=given)
    assert (ran.code, ran.out) == (0, b"udok asab\r\nitir omul\t\r\n \r\nasab")


def test_what_makes_no_sense_with_paragraphs_is_told(command: Command, toy_run: Path) -> None:
    for wrong in (["--document", "--n-best", "2"], ["--tags"], ["--document", "--stream"]):
        ran = command("translate", toy_run, *wrong, given=b"basa\n")
        assert ran.code == 2
        assert "--document" in ran.err
