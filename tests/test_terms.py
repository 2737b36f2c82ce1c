"""Terms, glossary and what stays unchanged, from text to text on a trained run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from qkv import Translator
from qkv.errors import ConfigError, RuleError
from qkv.search.sample import Sampling
from qkv.text.glossary import Glossary
from qkv.translate import Controls, Terms, terms_of
from tests import toy

SOURCES = [source for source, _ in toy.held_out()][:30]
ODD = "https://example.org/a?b=1"


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run)


def count(text: str, term: str) -> int:
    """How often a term stands there, if it begins with a letter as a whole word, and likewise where it ends."""
    before, after = (r"(?<!\w)" * term[0].isalnum(), r"(?!\w)" * term[-1].isalnum())
    return len(re.findall(f"{before}{re.escape(term)}{after}", text))


def has(text: str, term: str) -> bool:
    return count(text, term) > 0


@pytest.mark.parametrize("beam", [1, 4])
def test_what_has_its_terms_by_itself_is_left_as_it_is(translator: Translator, beam: int) -> None:
    plain = translator.translate(SOURCES, beam=beam, alternatives=beam // 4)
    terms = [Terms(required=((one.text.split()[0],),), forbidden=("basa basa basa",)) for one in plain]
    everyone_has_them = [
        all(has(other.text, one.required[0][0]) for other in (first, *first.alternatives))
        for one, first in zip(terms, plain, strict=True)
    ]
    held = translator.translate(SOURCES, beam=beam, alternatives=beam // 4, terms=terms)
    assert sum(everyone_has_them) > 10
    for same, one, other in zip(everyone_has_them, plain, held, strict=True):
        assert not same or one.text == other.text
        assert not same or other.score == pytest.approx(one.score, abs=1e-4)


@pytest.mark.parametrize(
    "how", [{"beam": 1}, {"beam": 2}, {"beam": 4, "alternatives": 3}, {"sampling": Sampling(), "alternatives": 1}]
)
def test_terms_appear_whatever_the_model_would_write(translator: Translator, how: dict[str, Any]) -> None:
    """Words that it never saw, letters that only bytes can spell, and what it would have written if it might."""
    likely = [one.text.split()[-1] for one in translator.translate(SOURCES)]
    terms = [Terms(required=(("Zürich", "zzz"),), once=(ODD, "{0}", "🎉"), forbidden=(word,)) for word in likely]
    held = translator.translate(SOURCES, terms=terms, controls=Controls(no_repeats_of=2), **how)
    for first, word in zip(held, likely, strict=True):
        for one in (first, *first.alternatives):
            assert has(one.text, "Zürich") or has(one.text, "zzz") or one.text.startswith("Zzz")
            assert [count(one.text, kept) for kept in (ODD, "{0}", "🎉")] == [1, 1, 1]
            assert not has(one.text.lower(), word)


def test_a_text_without_terms_is_translated_as_if_the_others_had_none(translator: Translator) -> None:
    terms = [Terms(required=(("xyz",),)), None, Terms()]
    held = translator.translate(SOURCES[:3], terms=terms)
    assert [one.text for one in held[1:]] == [one.text for one in translator.translate(SOURCES[1:3])]
    assert has(held[0].text, "xyz") or held[0].text.startswith("Xyz")


def test_a_term_is_cut_as_it_is_behind_a_space_and_behind_signs(translator: Translator) -> None:
    rule = translator._wording._encoder
    (term,) = {rule._term("asab"): None}
    surfaces = {b"".join(map(translator.tokenizer.surface, way)) for way in term.ways}
    assert surfaces == {b" asab", b"asab"}


@pytest.mark.parametrize("text", ["日本 ▁ ok", "é 🎉 a", "it's <b>{x}</b>"])
def test_surfaces_spell_what_is_decoded(translator: Translator, text: str) -> None:
    tokenizer = translator.tokenizer
    ids = tokenizer.encode(text)
    assert b"".join(map(tokenizer.surface, ids)).decode() == f" {text}"
    assert [tokenizer.surface(mark) for mark in (*tokenizer.marks, tokenizer.end)] == [b""] * (len(tokenizer.marks) + 1)


def test_whoever_contradicts_himself_is_told_where(translator: Translator) -> None:
    terms = [None, Terms(required=(("asab",),), forbidden=("ASAB",)), None]
    with pytest.raises(RuleError, match="text 2: no translation has all that was asked for"):
        translator.translate(SOURCES[:3], terms=terms)


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        ({"required": ("cat",)}, "they are given like .*tomcat"),
        ({"once": "cat"}, "they are given like"),
        ({"forbidden": (" ",)}, "a term is empty"),
        ({"required": ((),)}, "a term is empty"),
    ],
)
def test_terms_that_are_none_are_refused(terms: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Terms(**terms)


def test_there_are_terms_for_every_text(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="1 terms, or None, for 2 texts"):
        translator.translate(SOURCES[:2], terms=[None])


GLOSSARY = Glossary.parse(["basa\tAAA|BBB", "kodu\t=", "*\t!udok"], "terms")


def test_a_glossary_and_what_is_kept_become_terms() -> None:
    """No term is looked for inside what is kept."""
    text = "basa {basa} kodu 3.5 https://kodu.org"
    assert terms_of(text, glossary=GLOSSARY, keep=["placeholders", "urls", "numbers"]) == Terms(
        required=(("AAA", "BBB"), ("kodu",)), once=("{basa}", "3.5", "https://kodu.org"), forbidden=("udok",)
    )
    assert terms_of(text) == Terms()
    with pytest.raises(ConfigError, match="nothing to keep called 'dates'; there is: placeholders, "):
        terms_of(text, keep=["dates"])


def test_the_command_line_takes_a_glossary_and_what_to_keep(
    toy_run: Path, tmp_path: Path, command: toy.Command
) -> None:
    (tmp_path / "terms.tsv").write_text("basa\tAAA\nkodu\t=\n")
    ran = command(
        "translate", str(toy_run), "--glossary", str(tmp_path / "terms.tsv"), "--keep", "placeholders,numbers",
        given=b"basa nemo {x}\nrisa 42\n\nlumo kodu\n",
    )  # fmt: skip
    assert ran.code == 0
    first, second, third, fourth = ran.lines
    assert has(first, "AAA")
    assert first.count("{x}") == 1
    assert second.count("42") == 1
    assert third == ""
    assert has(fourth, "kodu") or fourth.startswith("Kodu")


def test_the_command_line_tells_what_cannot_be(toy_run: Path, tmp_path: Path, command: toy.Command) -> None:
    ran = command("translate", str(toy_run), "--keep", "dates", given=b"")
    assert (ran.code, "nothing to keep called 'dates'" in ran.err) == (2, True)
    (tmp_path / "terms.tsv").write_text("basa AAA\n")
    ran = command("translate", str(toy_run), "--glossary", str(tmp_path / "terms.tsv"), given=b"")
    assert (ran.code, "terms.tsv, line 1: no tab" in ran.err) == (3, True)
