"""Terms, glossary and what stays unchanged, from text to text on a trained run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qkv import Translator
from qkv.errors import ConfigError, RuleError
from qkv.search.sample import Sampling
from qkv.text.cleaning import normalise
from qkv.text.glossary import Glossary
from qkv.text.protect import find
from qkv.translate import Controls, Terms, terms_of
from qkv.translate.keeping import Keeping
from qkv.translate.terms import KEPT
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
    sources = SOURCES[:10]
    likely = [one.text.split()[-1] for one in translator.translate(sources)]
    terms = [Terms(required=(("Zürich", "zzz"),), once=(ODD, "{0}", "🎉"), forbidden=(word,)) for word in likely]
    held = translator.translate(sources, terms=terms, controls=Controls(no_repeats_of=2), **how)
    for first, word in zip(held, likely, strict=True):
        for one in (first, *first.alternatives):
            assert has(one.text, "Zürich") or has(one.text, "zzz") or re.match(r"\W*Zzz", one.text)
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


ITEMS = {
    "placeholders": ["{name}", "%d", "{{ n }}"],
    "tags": ["<b>", '<a href="x y">'],
    "entities": ["&amp;"],
    "urls": ["https://a.b/c", "www.a.org"],
    "e-mails": ["tom@a.org"],
    "paths": ["/usr/bin/env", "src/main.py"],
    "code": ["`rm -rf x`"],
    "numbers": ["7", "1,250"],
}


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("how", [{"beam": 2, "alternatives": 1}, {"sampling": Sampling(temperature=3.0)}])
def test_the_finder_sees_in_a_translation_what_it_saw_in_the_source(
    translator: Translator, name: str, how: dict[str, Any]
) -> None:
    """Though the model never saw such things, and would rather write others, or halves of them."""
    items = ITEMS[name]
    texts = [
        " ".join([*words[:place], items[place % len(items)], *words[place:]])
        for place, words in enumerate(map(str.split, SOURCES[:6]))
    ]
    held = translator.translate(texts, terms=[terms_of(text, keep=[name]) for text in texts], **how)

    def seen(text: str) -> list[str]:
        return sorted(one.text for one in find(text, kinds=[KEPT[name]]))

    for text, first in zip(texts, held, strict=True):
        for one in (first, *first.alternatives):
            assert seen(one.text) == seen(text), one.text


ODD_TEXTS = st.one_of(
    st.sampled_from([item for items in ITEMS.values() for item in items]),
    st.text(alphabet="<>/&;{}%$_`@.:\\'\"!-?#()~,1a0sbA \u00e9\u4f60", min_size=1, max_size=12),
    st.sampled_from(" ".join(SOURCES[:3]).split()),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ODD_TEXTS, min_size=1, max_size=6), st.sampled_from([" ", ""]), st.integers(1, 4))
def test_whatever_the_source_is_the_finder_sees_the_same_in_its_translation(
    translator: Translator, parts: list[str], between: str, beam: int
) -> None:
    text = between.join(parts)
    (held,) = translator.translate([text], beam=beam, terms=[terms_of(text, keep=[*KEPT])])

    def seen(text: str) -> list[str]:
        return sorted(one.text for one in find(normalise(text), kinds=[*KEPT.values()]))

    assert seen(held.text) == seen(text), held.text


def whether_right(text: str, keeping: Keeping) -> bool:
    """Read letter by letter."""
    unread = ""
    for letter in text:
        read = keeping.read(unread + letter)
        if read is None:
            return False
        unread = read
    return keeping.is_whole(unread)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("see https://a.b/c.", True),
        ("see (https://a.b/c), or", True),
        ("see https://a.b/c/d", False),
        ("see https://a. https://a.b/c", False),
        ("https and h", True),
        ("https: no", False),
        ("end.7 is", False),
        ("7 is, (7)", True),
        ("70 or 2", False),
        ("x7 or", True),
        ("3{x} or", False),
        ("{x or", False),
        ("l'{x}, {{ y }}!", True),
        ("{{ y", False),
        ("{ y", True),
        ("%%d", False),
    ],
)
def test_what_is_kept_stands_whole_and_by_itself(text: str, is_right: bool) -> None:
    texts = ["https://a.b/c", "7", "{x}", "{{ y }}", "%d"]
    assert whether_right(text, Keeping(texts, ["url", "placeholder", "number"], apart=texts)) == is_right


def test_what_a_forced_beginning_has_inside_is_no_fault(translator: Translator) -> None:
    terms = [terms_of("basa 7", keep=["numbers"])]
    (held,) = translator.translate(["basa 7"], prefixes=["asab 5"], terms=terms)
    assert held.text.startswith("asab 5")
    assert sorted(one.text for one in find(held.text, kinds=["number"]) if one.text != "5") == ["7"]


def test_what_touches_a_word_in_the_source_may_do_so() -> None:
    assert terms_of("basa{x} {y}", keep=["placeholders"]).apart == ("{y}",)
    assert whether_right("asab{x}", Keeping(["{x}"], ["placeholder"]))


GLOSSARY = Glossary.parse(["basa\tAAA|BBB", "kodu\t=", "*\t!udok"], "terms")


def test_a_glossary_and_what_is_kept_become_terms() -> None:
    """No term is looked for inside what is kept."""
    text = "basa {basa} kodu 3.5 https://kodu.org"
    once = ("{basa}", "3.5", "https://kodu.org")
    assert terms_of(text, glossary=GLOSSARY, keep=["placeholders", "urls", "numbers"]) == Terms(
        required=(("AAA", "BBB"), ("kodu",)),
        once=once,
        forbidden=("udok",),
        kinds=("placeholder", "url", "number"),
        apart=once,
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
