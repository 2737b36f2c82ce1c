"""An order as sentences that a room takes, and translations of those as the texts that were ordered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from qkv.errors import ConfigError
from qkv.serve.explaining import explained
from qkv.serve.models import Steps
from qkv.serve.orders import Order
from qkv.serve.room import How
from qkv.text.glossary import Entry, Glossary
from qkv.translate import COMMONLY_KEPT, Parted, Terms, Translation, are_typeset, linked_through, part, terms_of

_Terms = list[Terms | None]
_GLOSSARIES = 4
"""That are kept ready to be looked into: clients ask for many texts with one and the same."""


class Step(NamedTuple):
    """What one translator is asked for: the sentences come from the text, or from the step before."""

    how: How
    terms: _Terms
    """What the translation of each sentence has to keep to."""


class Prepared(NamedTuple):
    """An order, cut into sentences."""

    parted: list[Parted]
    sentences: list[str]
    steps: list[Step]
    translators: Steps
    """Who takes each of the steps."""
    order: Order

    def told(self, found: Sequence[Translation]) -> dict[str, Any]:
        """What is answered: the texts, or the one text explained."""
        if self.order.explained:
            return {"explained": explained(self.parted[0], [[one, *one.alternatives] for one in found])}
        return {"texts": self._joined(found)}

    def _joined(self, found: Sequence[Translation]) -> list[list[str]]:
        """For each text its translation, and others: the second best of all sentences, the third best, and so on."""
        left = iter(found)
        result = []
        for one in self.parted:
            own = [*islice(left, len(one.sentences))]
            ranks = [own, *([_ranked(some, rank) for some in own] for rank in range(self.order.alternatives))]
            texts = [one.joined(rank) for rank in ranks]
            result.append([texts[0], *dict.fromkeys(text for text in texts[1:] if text != texts[0])])
        return result


def prepare(order: Order, translators: Steps, *, beam: int, abandoned: Callable[[], bool]) -> Prepared:
    """The order as these translators take it; a beam of 0 is their own.

    What is abandoned on the way is not cut any further.
    """
    first, last = translators[0], translators[-1]
    parted = [
        part(first, text, language=order.source, markup=order.markup, untouched=order.untouched, cuts=order.cuts)
        for text in order.texts
        if not abandoned()
    ]
    sentences = [sentence for one in parted for sentence in one.sentences]
    glossary = None if order.glossary is None else _glossary((*order.glossary.items(),))
    align = order.explained or any(one.aligned for one in parted)
    # What stays as it is stays on the way, too; all else that is asked for is asked of the last step.
    on_the_way = [Step(How(beam or one.beam, 0, align), _terms(sentences, None, abandoned)) for one in translators[:-1]]
    # A beam finds no more than it is wide.
    how = How(max(beam or last.beam, order.alternatives + 1), order.alternatives, align)
    steps = [*on_the_way, Step(how, _terms(sentences, glossary, abandoned))]
    return Prepared(parted, sentences, steps, in_style_of(order, parted, translators), order)


def in_style_of(order: Order, parted: Sequence[Parted], translators: Steps) -> Steps:
    """The translators for what is ordered, which is typeset or not as a whole."""
    return tuple(one.typeset for one in translators) if order.typeset or are_typeset(parted) else translators


def continued(order: Order, translators: Steps, *, abandoned: Callable[[], bool]) -> dict[str, Any]:
    """The one sentence of an order, explained in wordings that begin with its prefix and go on with different words.

    Whatever is abandoned on the way has no wordings.
    """
    parted = part(translators[0], order.texts[0], language=order.source)
    *on_the_way, last = in_style_of(order, [parted], translators)
    if len(parted.sentences) > 1:
        raise ConfigError("a prefix is that of one sentence, and this text has several")
    wordings = []
    for sentence in parted.sentences:
        text, before = sentence, None
        for translator in on_the_way:
            (before,) = translator.translate([text], align=True, abandoned=lambda _: abandoned())
            text = before.text
        found = last.continuations(
            text, order.prefix or "", count=order.alternatives + 1, align=True, abandoned=abandoned
        )
        wordings.append(linked(None if before is None else [before] * len(found), found))
    return {"explained": explained(parted, wordings)}


def linked(before: Sequence[Translation] | None, found: list[Translation]) -> list[Translation]:
    """What a step found, its words linked to those of the source, whatever step came before."""
    return found if before is None else linked_through(before, found)


@lru_cache(_GLOSSARIES)
def _glossary(entries: tuple[tuple[str, str], ...]) -> Glossary:
    return Glossary([Entry(source, (target,), ()) for source, target in entries])


def _terms(sentences: Sequence[str], glossary: Glossary | None, abandoned: Callable[[], bool]) -> _Terms:
    every = [
        Terms() if abandoned() else terms_of(sentence, glossary=glossary, keep=COMMONLY_KEPT) for sentence in sentences
    ]
    return [one if one != Terms() else None for one in every]


def _ranked(best: Translation, rank: int) -> Translation:
    return best.alternatives[rank] if rank < len(best.alternatives) else best
