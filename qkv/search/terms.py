"""Terms that a translation must have, and such as it must not.

They are looked for in the text that the subwords spell, as whole words: whether the model writes a term by itself, and
how it cuts it, is all the same. Every hypothesis carries a plan, tokens which would write all that is missing if they
came next. A token after which there is no plan, or none that fits, is not allowed; so whatever the model prefers, a
hypothesis that lives can be finished as it was asked for.
"""

from __future__ import annotations

import codecs
import heapq
import itertools
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from qkv.search.matching import Matcher, Pattern, Reading, in_word
from qkv.search.needs import Needs

_SEPARATORS_OF_A_KIND = 3
_MOST_PLACES = 3000
"""So many places are looked at for a plan that is not straightforward; beyond that, what is asked for is too much."""

_MOST_READ_PLACES = 60
"""The same where a reader looks on: behind a space all is right to him, so a plan is near or nowhere."""


@dataclass(frozen=True)
class Pieces:
    """The text of every token, in UTF-8, a space where a word begins: a token may be one byte of a character.

    What is no text, such as the end, is empty.
    """

    texts: Sequence[bytes]

    def text(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.texts[token] for token in tokens)

    def separators(self) -> list[int]:
        """A few tokens that can be put between terms: of signs, of words, and such as make a word longer."""
        kinds: dict[tuple[bool, bool], list[int]] = {}
        for token, data in enumerate(self.texts):
            text = data.decode(errors="ignore")
            if text.strip() and "\ufffd" not in data.decode(errors="replace"):
                kinds.setdefault((in_word(text[0]), in_word(text[-1])), []).append(token)
        return [token for kind in kinds.values() for token in kind[:_SEPARATORS_OF_A_KIND]]

    def rests(self, data: bytes) -> list[tuple[int, ...] | None]:
        """For each place in a text the fewest tokens that spell it from there on; None where none do."""
        rests: list[tuple[int, ...] | None] = [None] * len(data) + [()]
        for start in reversed(range(len(data))):
            ends = range(start + 1, min(start + self._longest, len(data)) + 1)
            spelled = [
                (token, *rest)
                for end in ends
                if (rest := rests[end]) is not None and (token := self._tokens.get(data[start:end])) is not None
            ]
            rests[start] = min(spelled, key=len, default=None)
        return rests[:-1]

    @cached_property
    def _tokens(self) -> dict[bytes, int]:
        # Where a letter and its byte are both tokens, the letter comes later.
        return {text: token for token, text in enumerate(self.texts) if text}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.texts))


@dataclass(frozen=True)
class Term:
    """A text, and ways to write it: token by token, with or without a space before it."""

    text: str
    ways: tuple[tuple[int, ...], ...]
    first: bool = False
    """Whether it counts only where no word stands before it, such as one that is capitalised for that."""


class Reader(Protocol):
    """Reads a text while it is being written, and tells whether it is as it should be."""

    def read(self, text: str) -> str | None:
        """What is still open of a text, the open end of an older one before it; None where it can never be right."""
        ...

    def is_whole(self, text: str) -> bool:
        """Whether an open text is right if nothing follows."""
        ...


@dataclass(frozen=True)
class Wishes:
    """What is asked of a translation. Where terms stand is read from left to right, and the longest counts."""

    required: tuple[tuple[Term, ...], ...] = ()
    """Of each of these one appears, each time in a place of its own: what is asked for twice appears twice."""
    once: tuple[Term, ...] = ()
    """Each of these appears once, or as many times as it is given here, and no more."""
    forbidden: tuple[str, ...] = ()
    """None of these appears."""
    ignoring_case: bool = False
    """Whether what is forbidden is so in small letters and capitals alike."""
    reader: Reader | None = None
    """To whom the whole text has to be right, if there is one; he may want what appears once to stand by itself."""


class _Place(NamedTuple):
    """All that matters of what was written."""

    rest: bytes
    """The bytes of a character that is not whole yet."""
    wanted: Reading
    unwanted: Reading
    counts: tuple[int, ...]
    """How often each wanted text was found; beyond what anybody asks for, nobody counts."""
    unread: str = ""
    """What the reader has to be shown again, before what follows."""


_Plan = tuple[int, ...]


class Terms:
    """The rule for a hypothesis that has come to a place."""

    def __init__(self, book: _Book, place: _Place, plan: _Plan | None) -> None:
        self._book = book
        self._place = place
        self._plan = plan
        self._followers: dict[int, Terms] = {}
        self.left = sys.maxsize if plan is None else len(plan)
        # Tokens that only lead out of something forbidden are no part of what must be written.
        self.met = 0 if plan is None else -min(self.left, book.missing_at_end(place))

    def vocabulary(self) -> Collection[int]:
        return self._book.vocabulary

    @property
    def is_bound(self) -> bool:
        return self._book.is_bound(self._place)

    def offers(self) -> Collection[int]:
        return self._book.offers(self._place) | {*(self._plan or ())[:1]}

    def allows(self, token: int) -> bool:
        return token == self._book.end or self.after(token)._plan is not None

    def after(self, token: int) -> Terms:
        follower = self._followers.get(token)
        if follower is None:
            follower = self._followers[token] = self._after(token)
        return follower

    def _after(self, token: int) -> Terms:
        place = self._book.after(self._place, token)
        if place is None:
            return Terms(self._book, self._place, None)
        # Whoever keeps to the plan keeps what is left of it, so that it gets shorter with every token.
        if self._plan and self._plan[0] == token:
            return Terms(self._book, place, self._plan[1:])
        return Terms(self._book, place, self._book.plan(place))


def terms(wishes: Wishes, pieces: Pieces, separators: Sequence[int], end: int) -> Terms:
    """The rule that these wishes make; where they contradict one another, it allows nothing at all."""
    book = _Book(wishes, pieces, separators, end)
    start = _Place(b"", Reading(), Reading(), (0,) * len(book.patterns))
    return Terms(book, start, book.plan(start) if book.needs.are_possible else None)


class _Book:
    """What is asked for, and all that was found out about it: the hypotheses of a sentence share it."""

    def __init__(self, wishes: Wishes, pieces: Pieces, separators: Sequence[int], end: int) -> None:
        self.end = end
        self._pieces = pieces
        self._reader = wishes.reader
        self._separators = separators
        asked = [*wishes.required, *((term,) for term in wishes.once)]
        every = [*itertools.chain.from_iterable(asked)]
        texts = [*dict.fromkeys(term.text for term in every)]
        self.patterns = [Pattern(text, all(term.first for term in every if term.text == text)) for text in texts]
        self._ways = [
            sorted({way for term in every if term.text == text for way in term.ways}, key=lambda way: (len(way), way))
            for text in texts
        ]
        caps = Counter(term.text for term in wishes.once)
        self.needs = Needs(
            [frozenset(texts.index(term.text) for term in some) for some in asked],
            [len(self._surest(ways)) for ways in self._ways],
            [caps.get(text) for text in texts],
        )
        self._wanted = Matcher(self.patterns)
        fold = str.casefold if wishes.ignoring_case else str
        self._unwanted = Matcher([Pattern(text) for text in wishes.forbidden], fold)
        self.vocabulary = {*separators, *(token for ways in self._ways for way in ways for token in way)}
        self._rests: dict[bytes, set[_Plan]] = {}
        """What is left of each way to write a term, by what was written of the term."""
        for way in itertools.chain.from_iterable(self._ways):
            for cut in range(1, len(way)):
                self._rests.setdefault(pieces.text(way[:cut]).lstrip(b" "), set()).add(way[cut:])
        if self._reader is not None:
            # Who has begun with what appears once has to finish it, however he cuts it.
            for data in {term.text.encode() for term in wishes.once}:
                for cut, rest in enumerate(pieces.rests(data)):
                    if cut and rest is not None:
                        self._rests.setdefault(data[:cut], set()).add(rest)
        self._reached: dict[tuple[_Place, int], _Place | None] = {}
        self._plans: dict[_Place, _Plan | None] = {}
        self._straight_plans: dict[_Place, _Plan | None] = {}

    def _surest(self, ways: Sequence[_Plan]) -> _Plan:
        """The shortest way, or the shortest that is right behind anything: with a space before it."""
        spaced = (way for way in ways if self._reader and self._pieces.texts[way[0]].startswith(b" "))
        return next(spaced, ways[0])

    def after(self, place: _Place, token: int) -> _Place | None:
        """The place after one token more; None where what is written then can never be what was asked for."""
        # Plans of many places write the same terms, and from the first space on the same way.
        key = place, token
        if key not in self._reached:
            self._reached[key] = self._after(place, token)
        return self._reached[key]

    def is_bound(self, place: _Place) -> bool:
        """Whether something was begun that a reader wants to see finished at once."""
        return self._reader is not None and not place.rest and not self._reader.is_whole(place.unread)

    def _after(self, place: _Place, token: int) -> _Place | None:
        data = place.rest + self._pieces.texts[token]
        text, used = codecs.utf_8_decode(data, "replace", False)
        if not text:
            return place._replace(rest=data)
        unread = self._reader.read(place.unread + text) if self._reader else ""
        if unread is None:
            return None
        found, wanted = self._wanted.read(place.wanted, text)
        intruders, unwanted = self._unwanted.read(place.unwanted, text)
        counts, is_sound = self.needs.counted(place.counts, found)
        return _Place(data[used:], wanted, unwanted, counts, unread) if is_sound and not intruders else None

    def offers(self, place: _Place) -> set[int]:
        """Tokens that begin a term that is missing, or go on with one."""
        return {way[0] for way in self._chunks(place)}

    def missing_at_end(self, place: _Place) -> int:
        """How many tokens would be missing if this were the end."""
        return self._left_at_end(place)[0]

    def plan(self, place: _Place) -> _Plan | None:
        """Tokens after which all is written that was asked for, few if possible; None where there are none."""
        if place not in self._plans:
            plans = [
                (*chunk, *rest)
                for chunk in ((), *self._begun(place))
                if (reached := self._after_all(place, chunk)) is not None
                and (rest := self._straight_plan(reached)) is not None
            ]
            if plans or self.is_bound(place):
                self._plans[place] = min(plans, key=len, default=None)
            else:
                self._plans[place] = self._searched_plan(place)
        return self._plans[place]

    def _straight_plan(self, place: _Place) -> _Plan | None:
        """One missing term after the other, where none gets in the way of another."""
        written: list[tuple[_Place, _Plan]] = []
        while place not in self._straight_plans:
            left, is_sound = self._left_at_end(place)
            for way in self._missing(place) if left else ():
                reached = self._after_all(place, way)
                if reached is not None and self._left_at_end(reached)[0] + len(way) <= left:
                    written.append((place, way))
                    place = reached
                    break
            else:
                self._straight_plans[place] = () if not left and is_sound else None
        plan = self._straight_plans[place]
        for before, way in reversed(written):
            plan = self._straight_plans[before] = None if plan is None else (*way, *plan)
        return plan

    def _searched_plan(self, place: _Place) -> _Plan | None:
        """The same where they do: other orders and other ways, and something in between (A*)."""
        order = itertools.count()
        heap: list[tuple[int, int, int, _Place, _Plan]] = [(0, 0, next(order), place, ())]
        seen = {place}
        most = _MOST_PLACES if self._reader is None else _MOST_READ_PLACES
        while heap and len(seen) < most:
            *_, here, plan = heapq.heappop(heap)
            if self._left_at_end(here) == (0, True):
                return plan
            for chunk in (*self._chunks(here), *((token,) for token in self._separators)):
                reached = self._after_all(here, chunk)
                if reached is not None and reached not in seen:
                    seen.add(reached)
                    longer = (*plan, *chunk)
                    estimate = len(longer) + self._left_at_end(reached)[0]
                    heapq.heappush(heap, (estimate, -len(longer), next(order), reached, longer))
        return None

    def _chunks(self, place: _Place) -> Iterator[_Plan]:
        yield from self._begun(place)
        yield from self._missing(place)

    def _missing(self, place: _Place) -> Iterator[_Plan]:
        """Ways to write what would be missing if this were the end."""
        counts, _ = self._counts_at_end(place)
        return itertools.chain.from_iterable(self._ways[text] for text in self.needs.useful(counts))

    def _begun(self, place: _Place) -> Iterator[_Plan]:
        """What is left of terms that were begun; the last may have begun inside another."""
        written = place.wanted.open.encode() + place.rest
        for start in range(len(written)):
            yield from self._rests.get(written[start:], ())

    def _after_all(self, place: _Place | None, tokens: Sequence[int]) -> _Place | None:
        for token in tokens:
            if place is None:
                break
            place = self.after(place, token)
        return place

    def _left_at_end(self, place: _Place) -> tuple[int, bool]:
        """How many tokens would be missing if this were the end, and whether nothing would be too much."""
        counts, is_sound = self._counts_at_end(place)
        return self.needs.cost(counts), is_sound

    def _counts_at_end(self, place: _Place) -> tuple[tuple[int, ...], bool]:
        unread = place.unread
        if place.rest:
            # A character that never became whole is shown as a sign that says so.
            unread += "\ufffd"
            (found, wanted), (intruders, unwanted) = (
                matcher.read(reading, "\ufffd")
                for matcher, reading in ((self._wanted, place.wanted), (self._unwanted, place.unwanted))
            )
        else:
            found, intruders, wanted, unwanted = (), (), place.wanted, place.unwanted
        counts, is_sound = self.needs.counted(place.counts, [*found, *self._wanted.end(wanted)])
        is_sound = is_sound and not intruders and not self._unwanted.end(unwanted)
        return counts, is_sound and (self._reader is None or self._reader.is_whole(unread))
