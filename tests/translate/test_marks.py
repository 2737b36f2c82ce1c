"""A model that knows plain quotation marks and apostrophes alone: those of a translation follow its source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qkv import Translator
from qkv.config import override_all
from qkv.engines.load import load_run
from qkv.errors import ConfigError
from qkv.search.hypothesis import Hypothesis
from qkv.text.subwords import Tokenizer
from qkv.translate import translate_document
from qkv.translate.options import Controls, Terms
from qkv.translate.translation import Translation
from qkv.translate.wording import Wording
from tests import toy

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
    assert wording.target("l’ami") == wording.target("l'ami")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("nothing", PLAIN), ("it's", PLAIN), ('"a"', PLAIN), ("„a“ « b »", PLAIN), ("it’s", PRINTED), ("“a”", PRINTED)],
)
def test_marks_follow_the_source(wording: Wording, source: str, expected: str) -> None:
    assert told(wording, source, MIXED).text == expected


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
def test_a_stream_says_what_a_greedy_search_finds(translators: tuple[Translator, Translator], source: str) -> None:
    _, typed = translators
    stream = typed.stream(source, prefix="kodu \"basa's")
    said = "".join(stream)
    (found,) = typed.translate([source], beam=1, prefixes=["kodu \"basa's"])
    assert said == found.text
    assert found.text.startswith("kodu “basa’s" if "’" in source else "kodu \"basa's")


def test_a_given_translation_has_the_marks_that_it_was_given_with(translators: tuple[Translator, Translator]) -> None:
    _, typed = translators
    plain, printed = typed.score(["basa’s", "basa's"], ["kodu's", "kodu’s"])
    assert (plain.text, printed.text) == ("kodu's", "kodu’s")
    assert plain.score == printed.score


def test_what_goes_on_behind_a_prefix_is_told_apart_by_words(translators: tuple[Translator, Translator]) -> None:
    _, typed = translators
    found = typed.continuations("“basa” kodu", '"kodu" ', count=3)
    assert len({one.text for one in found}) == len(found) == 3
    assert all(one.text.startswith("“kodu” ") for one in found)


def test_texts_that_belong_together_are_printed_if_one_is_typeset(translators: tuple[Translator, Translator]) -> None:
    kept, typed = translators
    for texts, printed in ((["basa's", "kodu"], False), (["basa’s", "kodu"], True)):
        assert (
            typed.beside(texts)
            .translate(["kodu"], prefixes=["basa's"])[0]
            .text.startswith("basa’s" if printed else "basa's")
        )
        document = translate_document(typed, "\n".join(texts), prefixes=["basa's", "basa's"])
        assert document.text.count("basa’s" if printed else "basa's") == 2
    assert typed.beside(["’"]) is typed.beside(["’"]) is not typed
    assert kept.beside(["’"]) is kept
    assert typed.between(None, None).beside(["’"]) is not typed.beside(["’"])


def test_models_that_read_otherwise_do_not_translate_together(translators: tuple[Translator, Translator]) -> None:
    with pytest.raises(ConfigError, match=r"plain quotation marks and apostrophes alone \(data.typography\)"):
        Translator.joined(dict(zip("ab", translators, strict=True)))
