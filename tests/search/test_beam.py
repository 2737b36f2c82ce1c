"""Beam search, against exhaustive search and step-by-step argmax."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qkv.search.beam import beam_search
from qkv.search.hypothesis import Hypothesis, Limits, Penalty, paper_penalty
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes, Scripted

ALPHAS = [0.0, 0.6, 2.0, -0.7]


def limits(*longest: int, forbidden: tuple[int, ...] = ()) -> Limits:
    return Limits(begin=BEGIN, end=END, longest=[*longest], forbidden=forbidden)


def same(ours: list[Hypothesis], theirs: list[Hypothesis]) -> None:
    assert [(one.ids, one.complete) for one in ours] == [(one.ids, one.complete) for one in theirs]
    assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], rel=1e-5)
    assert [one.log_probability for one in ours] == pytest.approx([one.log_probability for one in theirs], rel=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("forbidden", [(), (2,)])
@pytest.mark.parametrize("keep", [1, 7])
def test_a_beam_as_wide_as_the_space_finds_what_exhaustive_search_finds(
    alpha: float, forbidden: tuple[int, ...], keep: int
) -> None:
    model, longest = MadeUp(4), (4, 2, 3)
    rules, penalty = limits(*longest, forbidden=forbidden), paper_penalty(alpha)
    found = beam_search(model, Prefixes.of(0, 1, 2), rules, width=4**4, penalty=penalty, keep=keep)
    for sentence, ours in enumerate(found):
        same(ours, model.everything(sentence, rules, longest[sentence], penalty)[:keep])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("forbidden", [(), (2,)])
def test_everything_can_be_found_down_to_the_last_and_nothing_else(alpha: float, forbidden: tuple[int, ...]) -> None:
    model, rules, penalty = MadeUp(3), limits(4, forbidden=forbidden), paper_penalty(alpha)
    everything = model.everything(0, rules, 4, penalty)
    found = beam_search(model, Prefixes.of(0), rules, width=3**4, penalty=penalty, keep=len(everything) + 5)
    same(found[0], everything)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("end_bonus", [-1.0, 1.0])
def test_a_beam_of_one_takes_the_best_word_at_every_step(alpha: float, end_bonus: float) -> None:
    model, longest = MadeUp(7, end_bonus=end_bonus), 6
    found = beam_search(model, Prefixes.of(*range(20)), limits(*[longest] * 20), width=1, penalty=paper_penalty(alpha))
    for sentence, (ours,) in enumerate(found):
        ids: list[int] = []
        while len(ids) < longest:
            word = int(model.gains(sentence, tuple(ids)).argmax())
            if word == END:
                break
            ids.append(word)
        assert (ours.ids, ours.complete) == (ids, len(ids) < longest)
    assert {ours.complete for (ours,) in found} == {True, False}


@pytest.mark.parametrize("width", [1, 3])
def test_a_batch_is_its_sentences_each_alone(width: int) -> None:
    """Sentences of it leave at different steps: for the others nothing changes."""
    model, longest, penalty = MadeUp(9), [5, 1, 8, 3, 8, 8], paper_penalty(0.6)
    together = beam_search(model, Prefixes.of(*range(6)), limits(*longest), width=width, penalty=penalty, keep=width)
    assert len({len(state.sentences) for state in model.steps}) > 2
    for sentence, found in enumerate(together):
        alone = beam_search(
            model, Prefixes.of(sentence), limits(longest[sentence]), width=width, penalty=penalty, keep=width
        )
        assert [found] == alone


def test_no_sentences_find_nothing() -> None:
    assert beam_search(MadeUp(4), Prefixes.of(), limits(), width=2, penalty=float) == []


def test_limits_are_kept_and_what_they_cut_off_is_not_complete() -> None:
    model, longest = MadeUp(5, end_bonus=-20.0), [1, 2, 5]
    found = beam_search(model, Prefixes.of(0, 1, 2), limits(*longest), width=3, penalty=paper_penalty(0.6), keep=3)
    assert [[len(one.ids) for one in best] for best in found] == [[1] * 3, [2] * 3, [5] * 3]
    assert not any(one.complete for best in found for one in best)


def test_an_end_counts_as_a_token() -> None:
    """With room for two tokens, a complete hypothesis has one word."""
    model, rules = MadeUp(5, end_bonus=3.0), limits(*[2] * 10)
    found = beam_search(model, Prefixes.of(*range(10)), rules, width=25, penalty=float, keep=30)
    assert {(len(one.ids), one.complete) for best in found for one in best} == {(0, True), (1, True), (2, False)}


@pytest.mark.parametrize("width", [1, 4])
def test_forbidden_words_never_appear_and_scores_stay_true(width: int) -> None:
    model, rules = MadeUp(8, end_bonus=1.0, sharpness=2.0), limits(*[5] * 10, forbidden=(1, 4, 7))
    found = beam_search(model, Prefixes.of(*range(10)), rules, width=width, penalty=paper_penalty(0.6), keep=width)
    for sentence, best in enumerate(found):
        assert len(best) == width
        for one in best:
            assert not {1, 4, 7} & {*one.ids}
            expected = model.log_probability(sentence, one.ids, complete=one.complete)
            assert one.log_probability == pytest.approx(expected, rel=1e-5)
            assert one.score == pytest.approx(expected / ((5 + len(one.ids) + one.complete) / 6) ** 0.6, rel=1e-5)


def test_hypotheses_come_best_first_and_no_two_alike() -> None:
    model, rules = MadeUp(5), limits(*[5] * 10)
    for width in (2, 3, 10):
        found = beam_search(model, Prefixes.of(*range(10)), rules, width=width, penalty=paper_penalty(0.6), keep=width)
        for best in found:
            assert len({(tuple(one.ids), one.complete) for one in best}) == width
            assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)


def test_it_stops_when_nothing_alive_can_still_be_among_the_best() -> None:
    """An end that is nearly certain settles every sentence at the first step, far from the limit."""
    model = MadeUp(5, end_bonus=30.0)
    found = beam_search(model, Prefixes.of(0, 1), limits(50, 50), width=3, penalty=paper_penalty(0.6))
    assert [len(state.written) for state in model.steps] == [2]
    assert [[(one.ids, one.complete) for one in best] for best in found] == [[([], True)]] * 2


def test_it_stops_when_nothing_can_be_written_any_more() -> None:
    """All words but the end are forbidden: there is one hypothesis, however many are asked for."""
    model = MadeUp(4)
    rules = limits(50, forbidden=(1, 2, 3))
    (found,) = beam_search(model, Prefixes.of(0), rules, width=3, penalty=paper_penalty(0.6), keep=3)
    assert [(one.ids, one.complete) for one in found] == [([], True)]
    assert [len(state.written) for state in model.steps] == [1]


@pytest.mark.parametrize(
    ("model", "penalty", "words"),
    [
        # The end comes first and costs little; after one costly word the others cost nothing, and only length pays.
        (Scripted(0.8, 0.001), float, 10),
        # Where length is punished the next step is the best that can be hoped for, not the last.
        (Scripted(0.2, 0.999), lambda length: 1 / length, 1),
    ],
)
def test_it_goes_on_while_something_alive_can_still_win(model: Scripted, penalty: Penalty, words: int) -> None:
    found = beam_search(model, Prefixes.of(0), limits(10), width=2, penalty=penalty)
    same(found[0], model.everything(0, limits(10), 10, penalty)[:1])
    assert len(found[0][0].ids) == words


def test_the_papers_penalty_is_that_of_wu_and_others() -> None:
    assert paper_penalty(0.6)(7) == pytest.approx(((5 + 7) / (5 + 1)) ** 0.6)
    assert paper_penalty(0.6)(1) == 1
    assert paper_penalty(0.0)(50) == 1


@pytest.mark.parametrize("width", [1, 3])
def test_a_sentence_that_nobody_waits_for_leaves_and_changes_nothing_for_the_others(width: int) -> None:
    model, asked = MadeUp(7, end_bonus=-9.0), []

    def abandoned(sentence: int) -> bool:
        asked.append(sentence)
        return sentence == 3 and asked.count(3) == 2

    def search(abandoned: Callable[[int], bool] | None) -> list[list[Hypothesis]]:
        rules, penalty = limits(*[6] * 5), paper_penalty(0.6)
        return beam_search(model, Prefixes.of(*range(5)), rules, width=width, penalty=penalty, abandoned=abandoned)

    whole, found = search(None), search(abandoned)
    assert (found[3], asked.count(3)) == ([], 2)
    for sentence in (0, 1, 2, 4):
        same(found[sentence], whole[sentence])
