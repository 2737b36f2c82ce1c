"""Sampling: what is drawn, how often, and from how much."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from qkv.errors import ConfigError, NotFiniteError
from qkv.search.beam import beam_search
from qkv.search.engine import Integers, Known
from qkv.search.hypothesis import Hypothesis, Limits
from qkv.search.sample import Sampling, sample
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes


def draw(
    model: MadeUp,
    sentences: list[int],
    how: Sampling,
    *,
    longest: int,
    seed: int = 1,
    forbidden: tuple[int, ...] = (),
) -> list[Hypothesis]:
    rules = Limits(begin=BEGIN, end=END, longest=[longest] * len(sentences), forbidden=forbidden)
    seeds = [(seed, number) for number in range(len(sentences))]
    return sample(model, Prefixes.of(*sentences), rules, how, seeds=seeds)


def first_words(draws: int, how: Sampling, forbidden: tuple[int, ...] = ()) -> NDArray[np.float64]:
    """The share of each of six words among the first words drawn for one sentence."""
    found = draw(MadeUp(6), [3] * draws, how, longest=1, forbidden=forbidden)
    counts = Counter(one.ids[0] if one.ids else END for one in found)
    return np.array([counts[word] for word in range(6)], dtype=np.float64) / draws


def chances(temperature: float = 1.0) -> NDArray[np.float64]:
    weight = np.exp(MadeUp(6).logits(3, ()).astype(np.float64) / temperature)
    chance: NDArray[np.float64] = weight / weight.sum()
    return chance


def test_the_same_generator_draws_the_same() -> None:
    model = MadeUp(9)
    first = draw(model, [*range(10)], Sampling(), longest=6)
    assert draw(model, [*range(10)], Sampling(), longest=6) == first
    assert draw(model, [*range(10)], Sampling(), longest=6, seed=2) != first


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_words_are_drawn_as_often_as_they_are_likely(temperature: float) -> None:
    draws, expected = 4000, chances(temperature)
    share = first_words(draws, Sampling(temperature))
    chi_square = (draws * np.square(share - expected) / expected).sum()
    # One draw in a thousand of a chi-square with five degrees of freedom is beyond 20.5.
    assert chi_square < 20.5


def test_whole_sentences_are_drawn_as_often_as_they_are_likely() -> None:
    model, draws = MadeUp(3), 3000
    found = draw(model, [5] * draws, Sampling(), longest=2)
    rules = Limits(begin=BEGIN, end=END, longest=[2])
    everything = model.everything(5, rules, 2, lambda _: 1.0)
    counts = Counter((tuple(one.ids), one.complete) for one in found)
    assert sum(np.exp(one.log_probability) for one in everything) == pytest.approx(1.0)
    expected = np.exp([one.log_probability for one in everything])
    share = np.array([counts[tuple(one.ids), one.complete] for one in everything]) / draws
    # Six degrees of freedom.
    assert (draws * np.square(share - expected) / expected).sum() < 22.5


def test_scores_are_true_log_probabilities_whatever_was_forbidden_or_sharpened() -> None:
    model = MadeUp(8, end_bonus=1.0)
    for how in (Sampling(), Sampling(temperature=0.7), Sampling(top_k=3), Sampling(top_p=0.6)):
        for sentence, one in enumerate(draw(model, [*range(12)], how, longest=4, forbidden=(1, 5))):
            assert not {1, 5} & {*one.ids}
            expected = model.log_probability(sentence, one.ids, complete=one.complete)
            assert one.score == one.log_probability == pytest.approx(expected, rel=1e-5)


def test_forbidden_words_leave_their_share_to_the_others() -> None:
    share = first_words(4000, Sampling(), forbidden=(1, 2))
    expected = chances()
    expected[[1, 2]] = 0
    np.testing.assert_allclose(share, expected / expected.sum(), rtol=0, atol=0.03)


@pytest.mark.parametrize(
    "how", [Sampling(top_k=1), Sampling(top_p=1e-6), Sampling(temperature=1e-4), Sampling(epsilon=0.999)]
)
def test_with_no_freedom_left_it_is_greedy(how: Sampling) -> None:
    model, sentences = MadeUp(9, end_bonus=1.0), [*range(30)]
    rules = Limits(begin=BEGIN, end=END, longest=[5] * 30)
    greedy = beam_search(model, Prefixes.of(*sentences), rules, width=1, penalty=lambda _: 1.0)
    found = draw(model, sentences, how, longest=5)
    assert [(one.ids, one.complete) for one in found] == [(best[0].ids, best[0].complete) for best in greedy]
    assert {one.complete for one in found} == {True, False}


@pytest.mark.parametrize("k", [1, 2, 5, 6, 99])
def test_top_k_keeps_the_k_best(k: int) -> None:
    best = np.argsort(-chances())[:k].tolist()
    assert {*first_words(1500, Sampling(top_k=k)).nonzero()[0].tolist()} == {*best}


@pytest.mark.parametrize(
    ("p", "temperature"), [(0.1, 1.0), (0.5, 1.0), (0.8, 1.0), (0.99, 1.0), (0.8, 3.0), (0.8, 0.3)]
)
def test_top_p_keeps_the_fewest_best_that_have_p_together(p: float, temperature: float) -> None:
    """Together at this temperature: it is what is drawn from that counts."""
    chance = chances(temperature)
    best = np.argsort(-chance)
    kept = next(n for n in range(1, 7) if chance[best[:n]].sum() >= p)
    expected = np.zeros(6)
    expected[best[:kept]] = chance[best[:kept]]
    share = first_words(4000, Sampling(temperature, top_p=p))
    assert {*share.nonzero()[0].tolist()} == {*best[:kept].tolist()}
    np.testing.assert_allclose(share, expected / expected.sum(), rtol=0, atol=0.03)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.06, 0.2])
def test_epsilon_keeps_what_the_model_itself_holds_to_be_that_likely(epsilon: float, temperature: float) -> None:
    kept = chances() >= epsilon
    assert kept.sum() == {0.01: 6, 0.06: 5, 0.2: 2}[epsilon]
    expected = np.where(kept, chances(temperature), 0.0)
    share = first_words(4000, Sampling(temperature, epsilon=epsilon))
    np.testing.assert_allclose(share, expected / expected.sum(), rtol=0, atol=0.03)
    assert not share[~kept].any()


def test_wishes_hold_together() -> None:
    """Those of the three best that have 0.6 together, and 0.15 each."""
    chance = chances()
    order = np.argsort(-chance)
    three = chance[order[:3]] / chance[order[:3]].sum()
    kept = [n for n in range(3) if three[:n].sum() < 0.9 and chance[order[n]] >= 0.15]
    share = first_words(2000, Sampling(top_k=3, top_p=0.9, epsilon=0.15))
    assert {*share.nonzero()[0].tolist()} == {*order[kept].tolist()}


def test_limits_are_kept_and_what_they_cut_off_is_not_complete() -> None:
    rules = Limits(begin=BEGIN, end=END, longest=[1, 4, 2])
    model = MadeUp(5, end_bonus=-30.0)
    found = sample(model, Prefixes.of(0, 1, 2), rules, Sampling(), seeds=[(1,), (2,), (3,)])
    assert [(len(one.ids), one.complete) for one in found] == [(1, False), (4, False), (2, False)]


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
        ({"top_k": 0}, "top_k is 0; it must be at least 1"),
        ({"top_p": 0.0}, "top_p is 0.0; it must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p is 1.5; it must be above 0 and at most 1"),
        ({"epsilon": 0.0}, "epsilon is 0.0; it must be above 0 and below 1"),
    ],
)
def test_impossible_wishes_are_refused(how: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Sampling(**how)  # type: ignore[arg-type]


class Broken(MadeUp):
    """Its scores are no numbers."""

    def step(self, token_R: Integers, state: Prefixes) -> tuple[Known, Prefixes]:
        return Known(np.full((len(token_R), 6), np.nan, dtype=np.float32)), state


@pytest.mark.parametrize("width", [1, 3, None])
def test_a_model_whose_scores_are_no_numbers_is_told(width: int | None) -> None:
    rules = Limits(begin=BEGIN, end=END, longest=[4, 4])
    with pytest.raises(NotFiniteError, match="not finite"):
        if width is None:
            sample(Broken(6), Prefixes.of(1, 2), rules, Sampling(), seeds=[(1,), (2,)])
        else:
            beam_search(Broken(6), Prefixes.of(1, 2), rules, width=width, penalty=float)


def test_what_is_drawn_for_a_sentence_does_not_depend_on_its_neighbours() -> None:
    model, rules = MadeUp(9), Limits(begin=BEGIN, end=END, longest=[6] * 3)
    together = sample(model, Prefixes.of(4, 5, 6), rules, Sampling(), seeds=[(1, 4), (1, 5), (1, 6)])
    for sentence, found in zip((4, 5, 6), together, strict=True):
        limits = Limits(begin=BEGIN, end=END, longest=[6])
        assert sample(model, Prefixes.of(sentence), limits, Sampling(), seeds=[(1, sentence)]) == [found]


def test_every_token_has_its_score() -> None:
    model = MadeUp(9)
    for one in draw(model, [*range(10)], Sampling(), longest=6):
        assert len(one.token_scores) == len(one.ids) + one.complete
        assert sum(one.token_scores) == pytest.approx(one.log_probability)
