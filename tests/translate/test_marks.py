"""A model that knows plain quotation marks and apostrophes alone: those of a translation follow its source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qkv import Translator
from qkv.engines.load import load_run
from qkv.errors import ConfigError
from qkv.search.hypothesis import Hypothesis
from qkv.settings import override_all
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer
from qkv.text.typography import Style, plain
from qkv.translate import Relay, translate_document
from qkv.translate.asked import Asked
from qkv.translate.choosing import told_apart
from qkv.translate.options import Controls, Terms
from qkv.translate.translation import Translation
from qkv.translate.wording import Wording
from tests import toy
from tests.translate.made import untrained

MIXED = 'l’ami « dit » "l\'été"'
PLAIN = 'l\'ami "dit" "l\'été"'
PRINTED = "l’ami «\u00a0dit\u00a0» «\u00a0l’été\u00a0»"


@pytest.fixture(scope="module")
def wording(toy_data: Path) -> Wording:
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    return Wording(tokenizer, 999, right_to_left=False, warn=print, learned=999, plain_marks=True, language="fr")


def told(wording: Wording, source: str, text: str, terms: Terms | None = None) -> Translation:
    """As if a model had found the text, each token of which looked at the first of the source."""
    ids = wording.tokenizer.encode(text)
    asked = wording.asked(0, source, Controls(), terms=terms)
    looked_TK = np.eye(1, len(asked.source), dtype=np.float32).repeat(len(ids) + 1, axis=0)
    found = Hypothesis(ids, -1.0, -1.0, complete=True, token_scores=[-1.0] * (len(ids) + 1), looked_TK=looked_TK)
    one = wording.translation(asked, found)
    aligned = wording.aligned(asked, found, looks_when_read=False)
    assert aligned.alignment is not None
    assert aligned.text == one.text == aligned.alignment.target_text
    assert "".join(one.text[slice(*span)] for span in aligned.alignment.target) == "".join(one.text.split())
    assert len(aligned.word_scores) == len(aligned.alignment.target)
    assert all(score < 0 for score in aligned.word_scores)
    return one


def test_sources_are_read_plain(wording: Wording) -> None:
    assert wording.source("« C’est » ‘b’") == wording.source("\"C'est\" 'b'")
    assert wording.target("l’ami", "a") == wording.target("l'ami", "a")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("nothing", PLAIN), ("it's", PLAIN), ('"a"', PLAIN), ("„a“ « b »", PLAIN), ("it’s", PRINTED), ("“a”", PRINTED)],
)
def test_marks_follow_the_source(wording: Wording, source: str, expected: str) -> None:
    assert told(wording, source, MIXED).text == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nothing", "l'ami dit 'l'été'"),
        ("'a'", "l'ami dit 'l'été'"),
        ("\"a 'b'\"", "l'ami dit 'l'été'"),
        ('"a"', "l'ami dit \"l'été\""),
        ("„a“", "l'ami dit \"l'été\""),
        ("“a”", "l’ami dit «\u00a0l’été\u00a0»"),
    ],
)
def test_quotations_are_single_only_where_the_source_has_such(wording: Wording, source: str, expected: str) -> None:
    assert told(wording, source, "l'ami dit 'l'été'").text == expected


def test_quotation_marks_that_are_forced_stay(wording: Wording) -> None:
    asked = wording.asked(0, '"a"', Controls(), prefix="dit 'l'")
    assert wording.written(wording.tokenizer.encode("dit 'l'été' 'b'"), asked.style) == "dit 'l'été' 'b'"


def test_terms_stay_as_they_were_given(wording: Wording) -> None:
    terms = Terms(required=(("l’ami",),), once=('"l\'été"',))
    assert told(wording, "a", MIXED, terms).text == 'l’ami "dit" "l\'été"'
    assert told(wording, "a’s", MIXED, terms).text == 'l’ami «\u00a0dit\u00a0» "l\'été"'


def test_a_model_that_learned_marks_as_they_are_writes_them_so(toy_data: Path) -> None:
    tokenizer = Tokenizer.load(toy_data / "tokenizer.model")
    wording = Wording(tokenizer, 999, right_to_left=False, warn=print, learned=999, language="fr")
    assert told(wording, "it's", MIXED).text == MIXED
    assert wording.source("a’s") != wording.source("a's")


@pytest.fixture(scope="module")
def translators(toy_run: Path) -> tuple[Translator, Translator]:
    """The toy run as it is, and as if it had learned plain marks alone."""
    model, tokenizer, config, *_ = load_run(toy_run, "cpu")
    typed = override_all(config, {"data.typography": "plain"})
    return Translator.of(model, tokenizer, config), Translator.of(model, tokenizer, typed)


def test_text_without_marks_is_translated_as_ever(translators: tuple[Translator, Translator]) -> None:
    sources = [source for source, _ in toy.held_out()[:10]]
    kept, typed = (one.translate(sources, align=True) for one in translators)
    assert [*kept] == [*typed]


@pytest.mark.parametrize("source", ["basa’s “kodu” naso", 'basa\'s "kodu" naso', "« basa » kodu"])
@pytest.mark.parametrize("prefix", ["", "kodu \"basa's", "«\u00a0l’a", "„kodu“ ‚a’", "a  b’"])
def test_a_stream_says_what_a_greedy_search_finds(
    translators: tuple[Translator, Translator], source: str, prefix: str
) -> None:
    _, typed = translators
    said = "".join(typed.stream(source, prefix=prefix))
    (found,) = typed.translate([source], beam=1, prefixes=[prefix])
    assert said == found.text
    assert found.text.startswith(prefix.replace("  ", " "))


@pytest.mark.parametrize("target", ["kodu's", "kodu’s", "«\u00a0l’ami\u00a0»", "« kodu »", "„a“ ‚b‘"])
def test_a_given_translation_stays_as_it_is_given(translators: tuple[Translator, Translator], target: str) -> None:
    _, typed = translators
    found, plainer = typed.score(["basa’s", "basa's"], [target, plain(normalise(target))], align=True)
    assert found.text.replace("\u00a0", " ") == normalise(target)
    assert found.score == pytest.approx(plainer.score)
    assert found.alignment is not None
    assert "".join(found.text[slice(*span)] for span in found.alignment.target) == "".join(target.split())


def test_what_goes_on_behind_a_prefix_is_told_apart_by_words(translators: tuple[Translator, Translator]) -> None:
    _, typed = translators
    for prefix in ('"kodu" ', "«\u00a0", "« kodu » ", "l’"):
        found = typed.continuations("“basa” kodu", prefix, count=3)
        assert len({one.text for one in found}) == len(found) == 3
        assert all(one.text.startswith(prefix.rstrip(" ")) for one in found)


@pytest.mark.parametrize(
    ("prefix", "ends"), [("", True), ("kodu ", True), ("kodu", False), ("«\u00a0", False), ("l’a\u00a0", False)]
)
def test_the_space_of_a_mark_ends_no_word(wording: Wording, prefix: str, ends: bool) -> None:
    assert wording.ends_a_word(prefix) == ends


def test_of_translations_that_differ_by_their_marks_alone_there_is_one(toy_data: Path) -> None:
    """A model that writes nonsense writes many marks, where the first of its letters are given to it."""
    translator = untrained(toy_data, plain_marks=True, extra_length=3)
    some = [translator.translate(["basa"], beam=24, alternatives=23, prefixes=[f"a{mark}"])[0] for mark in "'’"]
    for best in some:
        texts = [best.text, *(one.text for one in best.alternatives)]
        assert len({*texts}) == len(texts) > 1
        scores = [best.score, *(one.score for one in best.alternatives)]
        assert scores == sorted(scores, reverse=True)


def test_of_equal_texts_the_best_is_kept_in_its_place() -> None:
    some = [Translation(text, -score, complete=True) for score, text in enumerate("abacb")]
    assert [(one.text, one.score) for one in told_apart(some)] == [("a", 0), ("b", -1), ("c", -3)]


@pytest.mark.parametrize("prefix", ['"Je', "«\u00a0Je", "Je"])
def test_a_quotation_goes_on_as_it_was_begun(wording: Wording, prefix: str) -> None:
    style = wording.style("He’s", begun=prefix)
    assert isinstance(style, Style)
    assert style.printed == (prefix != '"Je')
    assert style.write(plain(prefix) + ' dis"').text == {'"Je': '"Je dis"', "«\u00a0Je": "«\u00a0Je dis\u00a0»"}.get(
        prefix, 'Je dis"'
    )


def test_terms_are_kept_as_they_are_read(wording: Wording) -> None:
    terms = Terms(required=(("«\u00a0l’e\u0301cole\u00a0»",),))
    assert told(wording, "a", "dit « l’école »", terms).text == "dit « l’école »"


Styles = list[tuple[int, bool]]


@pytest.fixture
def styles(monkeypatch: pytest.MonkeyPatch) -> Styles:
    """The number of every text that is told of, and whether its marks are printed."""
    found: Styles = []
    told = Wording.translation

    def watched(self: Wording, asked: Asked, hypothesis: Hypothesis) -> Translation:
        assert isinstance(asked.style, Style)
        found.append((asked.number, asked.style.printed))
        return told(self, asked, hypothesis)

    monkeypatch.setattr(Wording, "translation", watched)
    return found


@pytest.mark.parametrize(
    ("text", "printed"), [("basa's\nkodu", False), ("kodu\nbasa’s", True), ("kodu\n„basa“", False)]
)
def test_texts_that_belong_together_are_printed_if_one_is_typeset(
    translators: tuple[Translator, Translator], styles: Styles, text: str, printed: bool
) -> None:
    _, typed = translators
    for translator in (typed, Relay(typed, typed)):
        styles.clear()
        translate_document(translator, text)
        assert {*styles} == {(0, printed), (1, printed)}


def test_by_way_of_another_language_marks_follow_the_original(
    translators: tuple[Translator, Translator], styles: Styles
) -> None:
    _, typed = translators
    relay = Relay(typed, typed)
    relay.translate(["basa’s", "basa's", "basa"])
    assert sorted(styles) == [(0, True), (0, True), (1, False), (1, False), (2, False), (2, False)]
    styles.clear()
    assert [*relay.stream("basa’s")]
    assert styles == [(0, True), (0, True)]


def test_a_translator_of_what_is_typeset_is_the_same_whenever_it_is_asked_for(
    translators: tuple[Translator, Translator],
) -> None:
    kept, typed = translators
    assert typed.typeset is typed.typeset is not typed
    assert kept.typeset is kept
    assert typed.between(None, None).typeset is not typed.typeset


def test_models_that_read_otherwise_do_not_translate_together(translators: tuple[Translator, Translator]) -> None:
    with pytest.raises(ConfigError, match=r"plain quotation marks and apostrophes alone \(data.typography\)"):
        Translator.joined(dict(zip("ab", translators, strict=True)))
