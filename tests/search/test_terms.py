"""Terms that must appear and such as must not, against regular expressions and exhaustive search."""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.errors import RuleError
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from qkv.search.rules import AtLeast, NoRepeats, Prefix, Rule, Together
from qkv.search.sample import Sampling, sample
from qkv.search.terms import Pieces, Term, Terms, Wishes, terms
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes

PIECES = Pieces([b"", b" a", b" b", b"b", b"-", b"\xc3", b"\xa4"])
"""The end, words, a letter that makes them longer, a sign, and the bytes of ä."""
PENALTY = paper_penalty(0.6)
TEXTS = ["a", "b", "ab", "bb", "a b", "b a", "a-b", "-", "ä", "a ab", "bä"]


def text_of(ids: Sequence[int]) -> str:
    return PIECES.text(ids).decode(errors="replace")


def spelled(text: str) -> tuple[tuple[int, ...], ...]:
    """All ways to write a text, with and without a space before it."""

    def spell(rest: bytes) -> Iterator[tuple[int, ...]]:
        if not rest:
            yield ()
        for token, piece in enumerate(PIECES.texts):
            if piece and rest.startswith(piece):
                yield from ((token, *more) for more in spell(rest[len(piece) :]))

    return (*spell(f" {text}".encode()), *spell(text.encode()))


def term(text: str) -> Term:
    return Term(text, spelled(text))


def whole_words(texts: Sequence[str]) -> re.Pattern[str]:
    """The longest first, each as whole words."""
    return re.compile(
        "|".join(
            (r"(?<!\w)" if re.match(r"\w", text) else "")
            + re.escape(text)
            + (r"(?!\w)" if re.match(r"\w", text[-1]) else "")
            for text in sorted(texts, key=len, reverse=True)
        )
        or r"(?!)"
    )


def keeps(wishes: Wishes, ids: Sequence[int]) -> bool:
    """Whether a translation is what was asked for, by other means than those of the search."""
    text = text_of(ids)
    wanted = [[one.text for one in some] for some in wishes.required] + [[one.text] for one in wishes.once]
    found = Counter(whole_words([*itertools.chain(*wanted)]).findall(text))
    times = Counter(one.text for one in wishes.once)
    dealt_out = any(not Counter(choice) - found for choice in itertools.product(*wanted))
    return (
        dealt_out
        and all(found[one] == count for one, count in times.items())
        and not whole_words(wishes.forbidden).search(text)
    )


def rule_of(wishes: Wishes) -> Terms:
    return terms(wishes, PIECES, range(1, len(PIECES.texts)), END)


def search(
    rule: Rule, model: MadeUp, longest: int, width: int, *, keep: int = 1, sentence: int = 0
) -> list[Hypothesis]:
    limits = Limits(begin=BEGIN, end=END, longest=[longest])
    (found,) = beam_search(model, Prefixes.of(sentence), limits, width=width, penalty=PENALTY, keep=keep, rules=[rule])
    return found


some_texts = st.sampled_from(TEXTS)
some_wishes = st.builds(
    lambda required, once, forbidden: Wishes(
        tuple(tuple(map(term, some)) for some in required), tuple(map(term, once)), tuple(forbidden)
    ),
    st.lists(st.lists(some_texts, min_size=1, max_size=2, unique=True), max_size=3),
    st.lists(some_texts, max_size=2),
    st.lists(some_texts, max_size=2),
)


@settings(max_examples=200, deadline=None)
@given(some_wishes, st.sampled_from([1, 2, 4]), st.integers(0, 5), st.integers(0, 99), st.sampled_from([1.0, 30.0]))
def test_what_is_found_is_what_was_asked_for(
    wishes: Wishes, width: int, spare: int, sentence: int, sharpness: float
) -> None:
    """However unlikely the model finds it, and however narrow the beam is."""
    rule, model = rule_of(wishes), MadeUp(len(PIECES.texts), end_bonus=sharpness, sharpness=sharpness)
    if rule.left > 99:
        return
    for one in search(rule, model, rule.left + 1 + spare, width, keep=width, sentence=sentence):
        assert keeps(wishes, one.ids), text_of(one.ids)


LONGEST = 4
EVERYTHING = [ids for size in range(LONGEST + 1) for ids in itertools.product(range(1, len(PIECES.texts)), repeat=size)]


@settings(max_examples=25, deadline=None)
@given(some_wishes, st.integers(0, 99))
def test_a_beam_as_wide_as_the_space_finds_the_best(wishes: Wishes, sentence: int) -> None:
    """Of what the limit cuts off, such as could have ended before it."""
    model = MadeUp(len(PIECES.texts))
    expected = sorted(
        (
            model.hypothesis(sentence, [*ids], PENALTY(min(LONGEST, len(ids) + 1)), complete=len(ids) < LONGEST)
            for ids in EVERYTHING
            if keeps(wishes, ids) and keeps(wishes, ids[: LONGEST - 1])
        ),
        key=lambda one: -one.score,
    )[:5]
    if expected:
        found = search(rule_of(wishes), model, LONGEST, len(EVERYTHING), keep=5, sentence=sentence)
        assert [one.ids for one in found] == [one.ids for one in expected]
    else:
        with pytest.raises(RuleError):
            search(rule_of(wishes), model, LONGEST, 3)


@settings(max_examples=60, deadline=None)
@given(some_wishes, st.integers(0, 99))
def test_what_is_drawn_is_what_was_asked_for(wishes: Wishes, seed: int) -> None:
    rule = rule_of(wishes)
    if rule.left < 99:
        limits = Limits(begin=BEGIN, end=END, longest=[rule.left + 3] * 4)
        drawn = sample(
            MadeUp(len(PIECES.texts), end_bonus=1.0),
            Prefixes.of(*range(4)),
            limits,
            Sampling(),
            seeds=[(seed, number) for number in range(4)],
            rules=[rule] * 4,
        )
        assert all(keeps(wishes, one.ids) for one in drawn)


A, B, LONGER, DASH = 1, 2, 3, 4


@pytest.mark.parametrize("width", [1, 2, 4])
def test_terms_go_together_with_other_rules(width: int) -> None:
    wishes = Wishes(required=((term("a b"),), (term("a b"),)), once=(term("bb"),), forbidden=("-",))
    rule = rule_of(wishes)
    both = Together((Prefix((B, LONGER, LONGER)), rule, NoRepeats(2, rule.vocabulary()), AtLeast(END, 11)))
    for one in search(both, MadeUp(len(PIECES.texts), end_bonus=3.0), 15, width, keep=width):
        assert keeps(wishes, one.ids)
        assert one.ids[:3] == [B, LONGER, LONGER]
        assert len(one.ids) >= 11


def test_who_only_counts_tokens_is_content_with_those_that_others_need() -> None:
    rule = rule_of(Wishes(required=((term("a b"),), (term("b a"),))))
    assert rule.left == 4
    assert Together((rule, AtLeast(END, 3))).left == 4
    assert Together((rule, AtLeast(END, 6))).left == 6
    assert Together((rule, Prefix((A,)))).left == 5


CONTRADICTIONS = {
    "required and forbidden": Wishes(required=((term("a"),),), forbidden=("a",)),
    "a part of what is required is forbidden": Wishes(required=((term("a b"),),), forbidden=("b",)),
    "required twice and allowed once": Wishes(required=((term("a"),),), once=(term("a"),)),
    "in capitals": Wishes(required=((term("a b"),),), forbidden=("A B",), ignoring_case=True),
    "longer than the limit": Wishes(required=(tuple(term("a b") for _ in range(1)),) * 4),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_told(name: str) -> None:
    rule = rule_of(CONTRADICTIONS[name])
    with pytest.raises(RuleError, match="no translation has all that was asked for"):
        search(rule, MadeUp(len(PIECES.texts)), 8, 4)
    with pytest.raises(RuleError, match="no translation has all that was asked for"):
        sample(
            MadeUp(len(PIECES.texts)),
            Prefixes.of(0),
            Limits(begin=BEGIN, end=END, longest=[8]),
            Sampling(),
            seeds=[(1,)],
            rules=[rule],
        )


def follows(rule: Rule, *tokens: int) -> Rule:
    for token in tokens:
        assert rule.allows(token)
        rule = rule.after(token)
    return rule


def test_a_term_that_was_begun_is_gone_on_with_or_given_up() -> None:
    rule = rule_of(Wishes(required=((term("a bb"),),)))
    assert (rule.left, {*rule.offers()}) == (3, {A})
    begun = follows(rule, A, B)
    assert (begun.left, LONGER in begun.offers()) == (1, True)
    assert follows(begun, A).left == 2, "what ended it may begin it anew"
    assert follows(begun, LONGER).left == 0
    assert follows(begun, LONGER, LONGER).left == 3, "it was no whole word"


def test_of_several_alternatives_the_others_are_left_for_other_terms() -> None:
    rule = rule_of(Wishes(required=((term("a"), term("bb")), (term("a"),))))
    assert follows(rule, A).left == 1, "either can be written for the other"
    assert follows(rule, A, B, LONGER).left == 0
    assert follows(rule, A, A).left == 0


def test_a_longer_term_is_not_taken_for_a_shorter_one_inside_it() -> None:
    rule = rule_of(Wishes(once=(term("a"), term("a-b"))))
    after = follows(rule, A, DASH, LONGER)
    assert after.left == 1
    assert follows(after, A).left == 0
    assert follows(after, A, A).left == 1, "it would be there twice, if it did not become another word"


def test_what_leads_out_of_something_forbidden_is_no_stage_of_its_own() -> None:
    rule = rule_of(Wishes(required=((term("a"),),), forbidden=("b",)))
    assert (follows(rule, B).left, follows(rule, B).met) == (2, rule.met)


def test_a_capitalised_term_counts_only_at_the_beginning() -> None:
    pieces = Pieces([b"", b" cat", b" Cat", b' "', b"Cat"])
    small, capitalised = Term("cat", ((1,),)), Term("Cat", ((2,), (4,)), first=True)
    rule = terms(Wishes(required=((small, capitalised),)), pieces, [3], 0)
    assert [follows(rule, *ids).left for ids in ([2], [3, 4], [1, 2], [2, 2])] == [0, 0, 0, 0]
    again = terms(Wishes(required=((small, capitalised),) * 2), pieces, [3], 0)
    assert [follows(again, *ids).left for ids in ([2, 2], [2, 1])] == [1, 0]


@pytest.mark.parametrize("written", ["Bad", " bad", " BAD!", " (bad", "x bad,"])
def test_what_is_forbidden_is_so_however_it_is_spelled(written: str) -> None:
    letters = Pieces([b"", *(character.encode() for character in string.printable)])
    for ignoring_case in (True, False):
        rule: Rule = terms(Wishes(forbidden=("bad",), ignoring_case=ignoring_case), letters, letters.separators(), 0)
        *most, last = (letters.texts.index(character.encode()) for character in written)
        rule = follows(rule, *most)
        ends = rule.allows(last) and not rule.after(last).left
        assert ends == (not ignoring_case and "bad" not in written)
    longer = terms(Wishes(forbidden=("bad",)), letters, letters.separators(), 0)
    assert not follows(longer, *(letters.texts.index(one.encode()) for one in "badly, abad")).left


def test_many_terms_are_planned_for_at_once() -> None:
    """And so are many of which one cannot be: whoever asks for too much is told, and soon."""
    words = [f"{a}{b}" for a in string.ascii_lowercase[:5] for b in string.ascii_lowercase[:6]]
    pieces = Pieces([b"", *(f" {word}".encode() for word in words), b",", b"x"])
    every = tuple((Term(word, ((number,),)),) for number, word in enumerate(words, start=1))
    rule = terms(Wishes(required=every), pieces, pieces.separators(), 0)
    assert rule.left == len(words)
    assert terms(Wishes(required=every, forbidden=("ca",)), pieces, pieces.separators(), 0).left > 10**9
