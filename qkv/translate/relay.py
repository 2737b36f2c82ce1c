"""Two translators one after the other: from a language into another that no model has learned directly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Any

from qkv.errors import ConfigError
from qkv.text.alignment import Alignment, Link
from qkv.translate.options import Controls, Terms
from qkv.translate.stream import Stream
from qkv.translate.translation import Translation
from qkv.translate.translator import Translator


class Relay:
    """Translates by way of a language between; all that is asked for is asked of the second step."""

    def __init__(self, first: Translator, second: Translator) -> None:
        self._first = first
        self._second = second
        self.source_language = first.source_language
        self.target_language = second.target_language
        self.through = first.target_language

    @property
    def typeset(self) -> Relay:
        """As `Translator.typeset`."""
        return Relay(self._first.typeset, self._second.typeset)

    @property
    def at_once(self) -> int:
        """As `Translator.at_once`."""
        return min(self._first.at_once, self._second.at_once)

    @property
    def aligns_as_learned(self) -> bool:
        """As `Translator.aligns_as_learned`."""
        return self._first.aligns_as_learned and self._second.aligns_as_learned

    @property
    def holds_to_terms(self) -> bool:
        """As `Translator.holds_to_terms`."""
        return self._first.holds_to_terms and self._second.holds_to_terms

    @property
    def longest_sentence(self) -> int:
        """As `Translator.longest_sentence`."""
        return self._first.longest_sentence

    def measure(self, text: str) -> int:
        return self._first.measure(text)

    def translate(
        self,
        texts: Sequence[str],
        *,
        align: bool = False,
        terms: Sequence[Terms | None] | None = None,
        originals: Sequence[str] | None = None,
        progress: Callable[[int], None] | None = None,
        **how: Any,
    ) -> list[Translation]:
        """As `Translator.translate`; a score is that of the second step, and complete is what both steps have ended."""
        # What stays as it is stays on the way, too.
        on_the_way = None if terms is None else [one and one.unchanged for one in terms]
        between = self._first.translate(texts, align=align, terms=on_the_way)
        how |= {"align": align, "terms": terms, "originals": originals or texts, "progress": progress}
        found = self._second.translate([one.text for one in between], **how)
        found = [
            noted_through((self._first, self._second), _cut_with(before, one))
            for before, one in zip(between, found, strict=True)
        ]
        return linked_through(between, found) if align else found

    def stream(self, text: str, *, prefix: str = "", controls: Controls | None = None) -> Stream:
        """As `Translator.stream`; the first step is done before anything shows."""
        (before,) = self._first.translate([text])
        stream = self._second.stream(before.text, prefix=prefix, controls=controls, original=text)

        def parts() -> Generator[str, None, Translation]:
            yield from stream
            assert stream.translation is not None
            return noted_through((self._first, self._second), _cut_with(before, stream.translation))

        return Stream(parts())

    def score(self, *_: Any, **__: Any) -> list[Translation]:
        raise ConfigError(
            f"{self.source_language}-{self.target_language} goes through {self.through}, so no model knows how likely "
            "a translation is; score with a model of that direction"
        )


def noted_through(steps: Sequence[Translator], found: Translation) -> Translation:
    """What the last step found: who looks into it hears of the step before, where there was one."""
    if len(steps) == 1:
        return found
    first, second = steps
    source, through, target = first.source_language, second.source_language, second.target_language
    note = f"The text went from {source} into {through} first; this is how {through} became {target}."
    return dataclasses.replace(found, look=found.look and found.look.noted(note))


def _cut_with(before: Translation, found: Translation) -> Translation:
    """What became of a text that the length limit may have cut off on the way."""
    if before.complete:
        return found
    alternatives = tuple(dataclasses.replace(one, complete=False) for one in found.alternatives)
    return dataclasses.replace(found, complete=False, alternatives=alternatives)


def linked_through(between: Sequence[Translation], found: Sequence[Translation]) -> list[Translation]:
    """What the second step found, its words linked to those that the first step read."""
    return [
        dataclasses.replace(other, alignment=_joined(one.alignment, other.alignment))
        for one, other in zip(between, found, strict=True)
    ]


def _joined(one: Alignment | None, other: Alignment | None) -> Alignment | None:
    """From the words of the first text to those of the last, where the words between are the same in both steps."""
    if one is None or other is None or len(one.target) != len(other.source):
        return None
    before = {link.target: link for link in one.links}
    links = tuple(
        Link(before[link.source].source, link.target, round(link.weight * before[link.source].weight, 4))
        for link in other.links
        if link.source in before
    )
    return Alignment(one.source_text, other.target_text, one.source, other.target, links)
