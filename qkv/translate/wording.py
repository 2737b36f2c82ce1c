"""Text to what a search is given, and what it finds back to text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qkv.errors import ConfigError
from qkv.search.hypothesis import Hypothesis, Limits
from qkv.search.rules import AtLeast, NoRepeats, Prefix, Rule, together
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer
from qkv.translate.aligning import aligned, looked_for_each
from qkv.translate.options import Controls
from qkv.translate.translation import Translation

T = TypeVar("T")

_QUOTED = 30


@dataclass(frozen=True)
class Wording:
    """A tokenizer, and how it is used with a model."""

    tokenizer: Tokenizer
    longest: int
    """The most tokens that are read or written of a text, its end included."""
    right_to_left: bool
    """Whether the model writes the last word first; who translates does not notice."""
    warn: Callable[[str], None]

    def source(self, text: str) -> list[int]:
        """The ids of a source and its end; none of a text that says nothing."""
        text = normalise(text)
        ids = self.tokenizer.encode(text)
        if len(ids) >= self.longest:
            self.warn(
                f"a text of {len(ids):,} tokens ({text[:_QUOTED]!r}…) is cut: "
                f"only the first {self.longest - 1:,} are translated"
            )
            ids = ids[: self.longest - 1]
        return [*ids, self.tokenizer.end] if ids else []

    def target(self, text: str) -> tuple[int, ...]:
        """The ids of a translation, in the order that they are written in."""
        text = normalise(text)
        ids = self.tokenizer.encode(text)
        if len(ids) >= self.longest:
            self.warn(
                f"a translation of {len(ids):,} tokens ({text[:_QUOTED]!r}…) is cut: "
                f"only {self.longest:,} of them are scored"
            )
        return tuple(self._turned(ids))

    def rule(self, controls: Controls, prefix: str) -> Rule | None:
        """What a translation has to keep to."""
        rules: list[Rule] = []
        if prefix:
            if self.right_to_left:
                raise ConfigError("this run writes the last word first, so its translations cannot be begun for it")
            rules.append(Prefix(tuple(self.tokenizer.encode(normalise(prefix)))))
        if controls.no_repeats_of:
            rules.append(NoRepeats(controls.no_repeats_of))
        if controls.least_tokens:
            rules.append(AtLeast(self.tokenizer.end, controls.least_tokens))
        return together(rules)

    def limits(self, longest: list[int]) -> Limits:
        tokenizer = self.tokenizer
        return Limits(begin=tokenizer.begin, end=tokenizer.end, longest=longest, forbidden=tokenizer.marks)

    def aligned(self, source: Sequence[int], found: Hypothesis, *, looks_when_read: bool) -> Translation:
        """The translation with the words of its source that its words came from."""
        looked_TK = looked_for_each(found, looks_when_read=looks_when_read)
        ids, looked_TK = self._turned(found.ids), looked_TK[::-1] if self.right_to_left else looked_TK
        alignment = aligned(self.tokenizer, source, ids, looked_TK)
        return dataclasses.replace(self.translation(found), alignment=alignment)

    def translation(self, found: Hypothesis) -> Translation:
        ids = self._turned(found.ids)
        scores = [*self._turned(found.token_scores[: len(ids)]), *found.token_scores[len(ids) :]]
        return Translation(
            self.tokenizer.decode(ids),
            found.score,
            found.complete,
            tokens=tuple(self.tokenizer.piece(token) for token in [*ids, *[self.tokenizer.end] * found.complete]),
            token_scores=tuple(scores),
        )

    def _turned(self, some: Sequence[T]) -> Sequence[T]:
        """From the order of the text to that of writing, and back."""
        return some[::-1] if self.right_to_left else some
