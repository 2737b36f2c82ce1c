"""Text to what a search is given, and what it finds back to text."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from qkv.errors import ConfigError
from qkv.search.hypothesis import Hypothesis, Limits
from qkv.search.rules import AtLeast, NoRepeats, Prefix, Rule, together
from qkv.text.alignment import word_scores
from qkv.text.cleaning import normalise, plainly, says_nothing
from qkv.text.editing import Writing
from qkv.text.letters import Letters
from qkv.text.subwords import Tokenizer
from qkv.text.typography import Style, double_marks, has_marks, is_printed, is_typeset, plain
from qkv.text.words import Span
from qkv.translate.aligning import aligned, looked_for_each
from qkv.translate.asked import Asked
from qkv.translate.faults import Faults, faults
from qkv.translate.options import Controls, Terms
from qkv.translate.terms import Encoder
from qkv.translate.translation import Translation

T = TypeVar("T")

_QUOTED = 30
_LAST_SPACE = re.compile(r"(?<![«‹])\s+$")


@dataclass(frozen=True)
class Wording:
    """A tokenizer, and how it is used with a model."""

    tokenizer: Tokenizer
    longest: int
    """The most tokens that are read or written of a text, its end included."""
    right_to_left: bool
    """Whether the model writes the last word first; who translates does not notice."""
    warn: Callable[[str], None]
    learned: int
    """The most tokens of a text that the model has learned from, its tags and its end included."""
    tags: tuple[int, ...] = ()
    """What is put before every source: the language that is asked for, and what kind of text it is."""
    plain_marks: bool = False
    """Whether it reads and writes plain quotation marks and apostrophes alone; those of a text follow its source."""
    source_language: str | None = None
    """The one it reads."""
    language: str | None = None
    """The one it writes."""
    typeset: bool = False
    """Whether marks are printed whatever a text is like; that needs `plain_marks`."""

    @property
    def longest_source(self) -> int:
        """The most tokens that are read of a text, its end included, and its tags not."""
        return self.longest - len(self.tags)

    @property
    def longest_sentence(self) -> int:
        """The same of a text of which nothing will be left out."""
        return min(self.longest, self.learned) - len(self.tags)

    def read(self, text: str, *, spared: Sequence[str] = ()) -> str:
        """A source as the model knows such text; what is spared keeps its letters."""
        return self._letters.read(self._mended(text), spared=spared)

    def _mended(self, text: str) -> str:
        return plainly(text) if self.plain_marks else normalise(text)

    @property
    def _letters(self) -> Letters:
        return Letters(self.tokenizer.encode_all, self.language)

    def source(self, text: str, *, spared: Sequence[str] = ()) -> list[int]:
        """The ids of a source and its end; none of a text that says nothing."""
        text = self.read(text, spared=spared)
        ids = [] if says_nothing(text) else self.tokenizer.encode(text)
        if len(ids) >= self.longest_source:
            self.warn(
                f"a text of {len(ids):,} tokens ({text[:_QUOTED]!r}…) is cut: "
                f"only the first {self.longest_source - 1:,} are translated"
            )
            ids = ids[: self.longest_source - 1]
        return [*self.tags, *ids, self.tokenizer.end] if ids else []

    def target(self, text: str, source: str) -> tuple[int, ...]:
        """The ids of a translation of this source, in the order that they are written in."""
        ids = self._given(text, source)
        if len(ids) >= self.longest:
            self.warn(
                f"a translation of {len(ids):,} tokens ({text[:_QUOTED]!r}…) is cut: "
                f"only {self.longest:,} of them are scored"
            )
        return tuple(self._turned(ids))

    def asked(
        self,
        number: int,
        text: str,
        controls: Controls,
        prefix: str = "",
        terms: Terms | None = None,
        original: str | None = None,
    ) -> Asked:
        """A source and what its translation has to keep to; the original is what the source is a translation of."""
        begins: list[Rule] = []
        if self.right_to_left and (prefix or terms):
            raise ConfigError(
                "this run writes the last word first, so its translations can neither be begun for it nor held to terms"
            )
        if prefix:
            begins.append(Prefix(tuple(self._given(prefix, text, begins=True))))
        spared = tuple(map(normalise, terms.given)) if terms else ()
        read = self.read(text, spared=spared)
        return Asked(
            number,
            self.source(text, spared=spared),
            self._with_controls(begins, controls),
            self._with_controls([*begins, self._encoder.rule(terms, prefix)], controls)
            if terms and terms.binds
            else None,
            text=read,
            amounts=terms is not None and terms.amounts,
            style=self.style(text, begun=prefix, spared=spared, original=original),
        )

    def _given(self, text: str, source: str, *, begins: bool = False) -> list[int]:
        """The ids of a translation, or of how one begins, that somebody gives for this source."""
        return self.tokenizer.encode(self._letters.given(self._mended(text), self._mended(source), begins=begins))

    def style(
        self, source: str, *, begun: str, spared: tuple[str, ...] = (), original: str | None = None
    ) -> Writing | None:
        """How a translation of this that begins so is written, where the model would not write it so."""
        marks = self._marks(original or source, begun, spared) if self.plain_marks else None
        return self._letters.writing(self._mended(source), marks, begun=begun, spared=spared)

    def _marks(self, source: str, begun: str, spared: tuple[str, ...]) -> Style:
        # What is begun with marks goes on with such.
        printed = is_printed(begun) if has_marks(begun) else self.typeset or is_typeset(source)
        # The space of « belongs to it, and no other at the end; where white space was folded, it stays folded.
        as_given = _LAST_SPACE.sub("", begun)
        begun = as_given if plain(as_given) == self._mended(begun) else normalise(begun)
        return Style(printed, self.language, spared, begun, 0 if has_marks(begun) else double_marks(source))

    def _with_controls(self, rules: Sequence[Rule], controls: Controls) -> Rule | None:
        rules = [*rules]
        if controls.least_tokens:
            rules.append(AtLeast(self.tokenizer.end, controls.least_tokens))
        if controls.no_repeats_of:
            # What must be written may repeat: a search that has no other way left would come to nothing.
            spared = {token for rule in rules for token in rule.vocabulary()}
            rules.append(NoRepeats(controls.no_repeats_of, spared))
        return together(rules)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.tokenizer)

    def mending(self, asked: Asked, found: Hypothesis) -> Rule | None:
        """What a translation has to keep to whose faults can be seen, as they are in this one."""
        text = self.tokenizer.decode(found.ids)
        if not text.strip():
            return AtLeast(self.tokenizer.end, 1)
        wrong = self._faults(asked, text)
        return None if wrong is None else self._encoder.rule(wrong.terms)

    def faulty(self, asked: Asked, found: Hypothesis) -> float:
        """How many faults of a translation can be seen; nothing is worse than to say nothing."""
        text = self.tokenizer.decode(found.ids)
        if not text.strip():
            return math.inf
        wrong = self._faults(asked, text)
        return 0 if wrong is None else wrong.number

    def _faults(self, asked: Asked, text: str) -> Faults | None:
        if self.right_to_left:
            return None
        languages = self.source_language, self.language
        return faults(asked.text, text, self.tokenizer, amounts=asked.amounts, languages=languages)

    def limits(self, longest: list[int]) -> Limits:
        tokenizer = self.tokenizer
        return Limits(begin=tokenizer.begin, end=tokenizer.end, longest=longest, forbidden=tokenizer.marks)

    def ends_a_word(self, prefix: str) -> bool:
        """Whether a word begins behind a text; the space of « and that of » part none."""
        if self.plain_marks:
            prefix = plain(prefix).rstrip("\u00a0")
        return not prefix or prefix[-1].isspace()

    def written(self, ids: Sequence[int], style: Writing | None) -> str:
        """The text of ids that are in its order."""
        text = self.tokenizer.decode(ids)
        return text if style is None else style.write(text).text

    def aligned(self, asked: Asked, found: Hypothesis, *, looks_when_read: bool) -> Translation:
        """The translation with the words of its source that its words came from."""
        looked_TK = looked_for_each(found, looks_when_read=looks_when_read)
        ids, looked_TK = self._turned(found.ids), looked_TK[::-1] if self.right_to_left else looked_TK
        spans = self._spans(ids, asked.style)
        told = self.translation(asked, found)
        alignment = aligned(self.tokenizer, asked.source, told.text, spans, looked_TK)
        scores = word_scores(spans, told.token_scores[: len(ids)], alignment.target)
        return dataclasses.replace(told, alignment=alignment, word_scores=scores)

    def _spans(self, ids: Sequence[int], style: Writing | None) -> list[Span]:
        """Where in their text the characters of each id are."""
        spans = self.tokenizer.spans(ids)
        return spans if style is None else [*map(style.write(self.tokenizer.decode(ids)).moved, spans)]

    def translation(self, asked: Asked, found: Hypothesis) -> Translation:
        """What was found, as text."""
        ids = self._turned(found.ids)
        scores = [*self._turned(found.token_scores[: len(ids)]), *found.token_scores[len(ids) :]]
        return Translation(
            self.written(ids, asked.style),
            found.score,
            found.complete,
            tokens=tuple(self.tokenizer.piece(token) for token in [*ids, *[self.tokenizer.end] * found.complete]),
            token_scores=tuple(scores),
        )

    def _turned(self, some: Sequence[T]) -> Sequence[T]:
        """From the order of the text to that of writing, and back."""
        return some[::-1] if self.right_to_left else some
