"""Minimum Bayes risk and reranking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from qkv import Translation, Translator
from qkv.errors import ConfigError
from qkv.translate import Mbr, Rerank, Sampling
from qkv.translate.choosing import by_likeness
from qkv.translate.options import Likeness
from tests import toy
from tests.translate.made import untrained

SOURCES = [source for source, _ in toy.held_out()[:6]]
ORACLES: dict[Likeness, Metric] = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}


@pytest.fixture(scope="module")
def translator(toy_run: Path) -> Translator:
    return Translator.load(toy_run)


def every(translation: Translation) -> list[Translation]:
    return [translation, *translation.alternatives]


@pytest.mark.parametrize("likeness", ORACLES)
def test_each_is_ranked_by_its_mean_likeness_to_all_others(likeness: Likeness) -> None:
    """By hand, over all that was drawn: what was drawn twice is another to itself."""
    texts = ["the cat sat", "the cat sat down", "a dog", "the cat sat", "the cat is sad", "the cat sat down here"]
    drawn = [Translation(text, -1.0 - number, complete=True) for number, text in enumerate(texts)]
    expected = {
        text: sum(
            ORACLES[likeness].sentence_score(text, [other]).score
            for place, other in enumerate(texts)
            if place != number
        )
        / (len(texts) - 1)
        for number, text in enumerate(texts)
    }
    ranked = by_likeness(drawn, likeness)
    assert [one.text for one in ranked] == sorted(expected, key=lambda text: -expected[text])
    assert [one.score for one in ranked] == pytest.approx([expected[one.text] for one in ranked])


def test_of_equal_ones_the_likeliest_is_taken() -> None:
    drawn = [Translation(text, 0.0, complete=True) for text in ("b a", "a b", "b a", "a b")]
    assert [one.text for one in by_likeness(drawn, "chrf")] == ["b a", "a b"]


@pytest.mark.parametrize("likeness", ORACLES)
def test_what_is_taken_was_drawn(toy_data: Path, likeness: Likeness) -> None:
    nonsense, how = untrained(toy_data, extra_length=5), Sampling(temperature=0.5, top_k=4)
    drawn = nonsense.translate(SOURCES, sampling=how, alternatives=7, seed=3)
    chosen = nonsense.translate(SOURCES, sampling=how, mbr=Mbr(likeness, samples=8), alternatives=1, seed=3)
    for some, one in zip(drawn, chosen, strict=True):
        ranked = by_likeness(every(some), likeness)
        assert [other.text for other in every(one)] == [other.text for other in ranked[:2]]
        assert [other.score for other in every(one)] == pytest.approx([other.score for other in ranked[:2]])
        assert one.log_probability == pytest.approx(sum(one.token_scores))


def test_samples_of_a_good_model_agree_with_its_search(translator: Translator) -> None:
    searched = [one.text for one in translator.translate(SOURCES)]
    chosen = [one.text for one in translator.translate(SOURCES, mbr=Mbr("chrf", samples=16))]
    assert sum(one == other for one, other in zip(searched, chosen, strict=True)) >= len(SOURCES) - 1


def test_an_empty_text_stays_empty_by_whatever_is_chosen(translator: Translator) -> None:
    found = translator.translate(["", "basa"], mbr=Mbr(samples=4))
    found += translator.translate(["", "basa"], rerank=Rerank(translator))
    assert [one.text for one in found] == ["", "asab", "", "asab"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mbr": ("ter", 4)}, "translations are compared by chrf or bleu, not 'ter'"),
        ({"mbr": ("chrf", 1)}, "draw from 2 to 1024"),
        ({"mbr": ("chrf", 4), "alternatives": 4}, "the 5 best need at least 5 samples, not 4"),
        ({"rerank": 1.5}, "the weight of the second model is 1.5; it must be from 0 to 1"),
        ({"rerank": 0.5, "sampling": Sampling()}, "what is drawn is not reranked"),
        ({"rerank": 0.5, "mbr": ("chrf", 4)}, "what is drawn is not reranked"),
    ],
)
def test_a_choice_that_cannot_be_is_told(translator: Translator, options: dict[str, Any], told: str) -> None:
    def asked() -> dict[str, Any]:
        made: dict[str, Any] = {"mbr": lambda some: Mbr(*some), "rerank": lambda weight: Rerank(translator, weight)}
        return {name: made[name](value) if name in made else value for name, value in options.items()}

    with pytest.raises(ConfigError, match=told):
        translator.translate(["basa"], **asked())


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("backward", [False, True])
def test_reranked_is_what_the_beam_found_by_both_scores(
    translator: Translator, toy_data: Path, weight: float, backward: bool
) -> None:
    """The second model has another vocabulary; the toy language read backwards is the toy language."""
    other = untrained(toy_data)
    assert other.tokenizer.fingerprint != translator.tokenizer.fingerprint
    plain = translator.translate(SOURCES, beam=5, alternatives=4)
    ranked = translator.translate(SOURCES, beam=5, alternatives=2, rerank=Rerank(other, weight, backward=backward))
    changed = 0
    for source, before, after in zip(SOURCES, plain, ranked, strict=True):
        texts = [one.text for one in every(before)]
        pairs = (texts, [source] * 5) if backward else ([source] * 5, texts)
        second = other.score(*pairs, length_penalty=0.6)
        weighed = [
            ((1 - weight) * one.score + weight * their.score, one.text)
            for one, their in zip(every(before), second, strict=True)
        ]
        expected = sorted(weighed, key=lambda one: -one[0])[:3]
        assert [one.text for one in every(after)] == [text for _, text in expected]
        assert [one.score for one in every(after)] == pytest.approx([score for score, _ in expected], abs=1e-4)
        changed += after.text != before.text
    assert bool(changed) == (weight == 1)
