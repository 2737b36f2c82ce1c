"""A difference is called significant when it is one, and never when there is none."""

from __future__ import annotations

import random

import pytest

from qkv.errors import TextError
from qkv.evaluate import bleu, compare, score

WORDS = [f"wort{number}" for number in range(40)]


def corpus(sentences: int) -> list[str]:
    generator = random.Random(7)
    return [" ".join(generator.choices(WORDS, k=generator.randint(6, 14))) for _ in range(sentences)]


def damaged(lines: list[str], share: float, *, seed: int) -> list[str]:
    """The lines with about this share of their words replaced by one that occurs nowhere."""
    generator = random.Random(seed)
    return [" ".join("falsch" if generator.random() < share else word for word in line.split()) for line in lines]


REFERENCES = corpus(60)


def test_a_large_gain_is_significant() -> None:
    weak, strong = damaged(REFERENCES, 0.4, seed=1), damaged(REFERENCES, 0.1, seed=2)
    for one in compare(("weak", weak), ("strong", strong), REFERENCES).values():
        assert one.better == "strong"
        assert one.significant
        assert one.p_value < 0.05
        assert one.verdict.startswith("strong is better (p = 0.00")


def test_the_order_of_the_systems_does_not_change_who_is_better() -> None:
    weak, strong = damaged(REFERENCES, 0.4, seed=1), damaged(REFERENCES, 0.1, seed=2)
    for one in compare(("strong", strong), ("weak", weak), REFERENCES).values():
        assert one.better == "strong"
        assert one.significant


def test_noise_is_not_significant() -> None:
    one = compare(("a", damaged(REFERENCES, 0.2, seed=1)), ("b", damaged(REFERENCES, 0.2, seed=2)), REFERENCES)["bleu"]
    assert one.baseline.score != one.system.score
    assert not one.significant
    assert f"{one.better} scores higher, but not significantly" in one.verdict


def test_a_system_is_no_better_than_itself() -> None:
    lines = damaged(REFERENCES, 0.2, seed=1)
    for one in compare(("a", lines), ("b", lines), REFERENCES).values():
        assert one.better is None
        assert one.p_value == 1
        assert not one.significant
        assert one.verdict == "no difference"


def test_scores_are_those_of_the_whole_text_and_intervals_hold_them() -> None:
    first, second = damaged(REFERENCES, 0.3, seed=1), damaged(REFERENCES, 0.2, seed=2)
    comparisons = compare(("first", first), ("second", second), REFERENCES)
    assert comparisons["bleu"].baseline.score == pytest.approx(bleu(first, REFERENCES))
    assert comparisons["chrf"].system.score == pytest.approx(score(second, REFERENCES)["chrf"].value)
    for one in comparisons.values():
        for estimate in (one.baseline, one.system):
            assert 0 < estimate.margin < 15
            assert abs(estimate.score - estimate.mean) < estimate.margin


def test_the_same_question_gets_the_same_answer() -> None:
    first, second = damaged(REFERENCES, 0.3, seed=1), damaged(REFERENCES, 0.25, seed=2)
    answers = [compare(("a", first), ("b", second), REFERENCES) for _ in range(2)]
    assert answers[0] == answers[1]
    assert "|bs:1000|seed:12345|" in answers[0]["bleu"].signature


def test_the_system_with_a_wrong_count_is_named() -> None:
    with pytest.raises(TextError, match="second has 59 translations, but there are 60 references"):
        compare(("first", REFERENCES), ("second", REFERENCES[1:]), REFERENCES)


def test_mean_and_margin_are_those_of_test_sets_drawn_anew() -> None:
    lines, generator, drawn = damaged(REFERENCES, 0.3, seed=1), random.Random(3), []
    estimate = compare(("a", lines), ("b", REFERENCES), REFERENCES)["bleu"].baseline
    for _ in range(400):
        chosen = generator.choices(range(60), k=60)
        drawn.append(bleu([lines[one] for one in chosen], [REFERENCES[one] for one in chosen]))
    drawn.sort()
    assert estimate.mean == pytest.approx(sum(drawn) / 400, abs=0.6)
    assert estimate.margin == pytest.approx((drawn[389] - drawn[10]) / 2, rel=0.15)
