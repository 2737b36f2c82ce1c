"""An order as sentences that a room takes, and translations of those as the texts that were ordered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from qkv.serve.models import Steps
from qkv.serve.orders import Order
from qkv.serve.room import How
from qkv.text.glossary import Entry, Glossary
from qkv.translate import COMMONLY_KEPT, Parted, Terms, Translation, linked_through, part, terms_of

_Terms = list[Terms | None]


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
    alternatives: int

    def joined(self, found: Sequence[Translation]) -> list[list[str]]:
        """For each text its translation, and others: the second best of all sentences, the third best, and so on."""
        left = iter(found)
        result = []
        for one in self.parted:
            own = [*islice(left, len(one.sentences))]
            ranks = [own, *([_ranked(some, rank) for some in own] for rank in range(self.alternatives))]
            texts = [one.joined(rank) for rank in ranks]
            result.append([texts[0], *dict.fromkeys(text for text in texts[1:] if text != texts[0])])
        return result


def prepare(order: Order, translators: Steps, *, beam: int) -> Prepared:
    """The order as these translators take it; a beam of 0 is their own."""
    first, last = translators[0], translators[-1]
    parted = [
        part(first, text, language=order.source, markup=order.markup, untouched=order.untouched) for text in order.texts
    ]
    sentences = [sentence for one in parted for sentence in one.sentences]
    glossary = None
    if order.glossary is not None:
        glossary = Glossary([Entry(source, (target,), ()) for source, target in order.glossary.items()])
    align = any(one.aligned for one in parted)
    # What stays as it is stays on the way, too; all else that is asked for is asked of the last step.
    on_the_way = [Step(How(beam or one.beam, 0, align), _terms(sentences, None)) for one in translators[:-1]]
    # A beam finds no more than it is wide.
    how = How(max(beam or last.beam, order.alternatives + 1), order.alternatives, align)
    return Prepared(parted, sentences, [*on_the_way, Step(how, _terms(sentences, glossary))], order.alternatives)


def linked(before: Sequence[Translation] | None, found: list[Translation]) -> list[Translation]:
    """What a step found, its words linked to those of the source, whatever step came before."""
    return found if before is None else linked_through(before, found)


def _terms(sentences: Sequence[str], glossary: Glossary | None) -> _Terms:
    every = [terms_of(sentence, glossary=glossary, keep=COMMONLY_KEPT) for sentence in sentences]
    return [one if one != Terms() else None for one in every]


def _ranked(best: Translation, rank: int) -> Translation:
    return best.alternatives[rank] if rank < len(best.alternatives) else best
