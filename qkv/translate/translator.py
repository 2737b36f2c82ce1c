"""The translator: text becomes ids, a search finds ids, ids become text."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.config import Config
from qkv.engines.looks import Looks
from qkv.errors import ConfigError
from qkv.search.engine import Engine
from qkv.search.sample import Sampling
from qkv.search.whole import WholeSearch
from qkv.text.cleaning import normalise
from qkv.text.languages import Direction
from qkv.text.subwords import Tokenizer
from qkv.translate.asked import Asked
from qkv.translate.checks import require_as_many, require_one_each, require_texts
from qkv.translate.continuing import continuations
from qkv.translate.finding import Finder, Wanted, require_possible
from qkv.translate.making import Makings, around, loaded, together
from qkv.translate.options import Controls, Mbr, Precision, Rerank, Terms
from qkv.translate.searcher import AT_ONCE
from qkv.translate.stream import Stream, growing
from qkv.translate.translation import NOTHING, Translation
from qkv.translate.wording import Wording

if TYPE_CHECKING:
    from qkv.models.encoder_decoder import EncoderDecoder

_GIVEN_UP = Translation("", -math.inf, complete=False)
_TEXTS = 2000
_FOR_MBR = Sampling(epsilon=0.02)
"""What is drawn to be compared: no token that is hardly ever right (Freitag et al., 2023)."""


class Translator:
    """An engine, its tokenizer and how to search; text in, text out."""

    def __init__(self, makings: Makings) -> None:
        self._makings = makings

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *others: str | os.PathLike[str],
        device: str = "auto",
        precision: Precision = "float32",
    ) -> Translator:
        """The translator of an exported model, or of a run: its final weights, or its newest while it is training.

        Several of them are an ensemble, which searches as the first one does. On a GPU, `precision` is that of a beam
        search without rules, float32 unless said: in bfloat16 it is several times as quick, and translations depend on
        their neighbours.
        """
        return cls(together({str(one): loaded(Path(one), device, precision) for one in (path, *others)}))

    @classmethod
    def of(
        cls,
        model: EncoderDecoder,
        tokenizer: Tokenizer,
        config: Config,
        looks: Looks | None = None,
        directory: Path | None = None,
        *,
        whole: WholeSearch | None = None,
    ) -> Translator:
        """The translator of a model with these settings; its translations can be looked into if the directory of the
        checkpoint is known."""
        return cls(around(model, tokenizer, config, looks, directory, whole=whole))

    @classmethod
    def joined(cls, translators: Mapping[str, Translator]) -> Translator:
        """An ensemble of translators, which are named in case they do not fit together."""
        return cls(together({name: one._makings for name, one in translators.items()}))

    def between(self, source: str | None, target: str | None, *, domain: str | None = None) -> Translator:
        """The translator of one of its directions; where only one fits, a side that nobody names is found.

        `domain` is a kind of text that the model has learned to tell apart.
        """
        return Translator(self._makings.between(source, target, domain=domain))

    @cached_property
    def typeset(self) -> Translator:
        """The same for parts of something typeset: where it would make marks plain (`data.typography`), it prints them.

        It is the same whenever it is asked for: whoever collects texts for a translator knows it again.
        """
        return Translator(self._makings.typeset()) if self._wording.plain_marks else self

    def in_every_direction(self) -> Translator:
        """The same, asked also for directions that it has not learned, between languages that it has.

        It has no experience of them; that is for finding out whether it needs any.
        """
        return Translator(self._makings.in_every_direction())

    @property
    def engine(self) -> Engine[Any]:
        return self._makings.engine

    @property
    def tokenizer(self) -> Tokenizer:
        return self._wording.tokenizer

    @property
    def directions(self) -> tuple[Direction, ...]:
        """From which languages it translates into which, as far as it knows."""
        return self._makings.directions

    @property
    def source_language(self) -> str | None:
        return self._makings.source_language

    @property
    def target_language(self) -> str | None:
        return self._makings.target_language

    @property
    def aligns_as_learned(self) -> bool:
        """Whether its alignments are of the heads that were found to align best, and not of those that usually do."""
        return self._makings.aligns_as_learned

    @property
    def at_once(self) -> int:
        """How many texts to give together where there are many: enough to keep a device busy, and to see it go on."""
        return _TEXTS if self._makings.whole is None else AT_ONCE

    def measure(self, text: str) -> int:
        """How many tokens a text is read in, its end left out."""
        return len(self.tokenizer.encode(self._wording.read(text)))

    @property
    def holds_to_terms(self) -> bool:
        """Whether its translations can be held to terms: not where the last word is written first."""
        return not self._wording.right_to_left

    @property
    def beam(self) -> int:
        """How wide it searches where nobody asks for another width."""
        return self._makings.search.beam

    @property
    def longest_source(self) -> int:
        """How many tokens of a source are read, its end included."""
        return self._wording.longest_source

    @property
    def longest_sentence(self) -> int:
        """How many tokens a sentence may have, its end included, for the model to have learned from such."""
        return self._wording.longest_sentence

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        alternatives: int = 0,
        sampling: Sampling | None = None,
        seed: int = 0,
        mbr: Mbr | None = None,
        rerank: Rerank | None = None,
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Terms | None] | None = None,
        controls: Controls | None = None,
        align: bool = False,
        originals: Sequence[str] | None = None,
        progress: Callable[[int], None] | None = None,
        abandoned: Callable[[int], bool] | None = None,
    ) -> list[Translation]:
        """One translation for each text, in order; an empty text stays empty.

        `alternatives` asks for that many others of each; `sampling` draws instead of searching for the best, by random
        numbers that depend on the seed and the text alone; `mbr` draws many and takes the one most like the others;
        `rerank` asks a second model about what the beam found; each translation begins with its one of the `prefixes`,
        and keeps to its one of the `terms`, which leaves what keeps to them by itself as it is; `align` tells which
        words of the source its words came from. `originals` are what the texts are translations of, if they are: marks
        follow those. `abandoned` is asked before each step of a search whether nobody waits for the text of this number
        any more: such a text is given up, and comes back empty and not complete.
        """
        require_texts(texts, "texts")
        require_one_each(texts, prefixes=prefixes, terms=terms, originals=originals)
        searcher = self._makings.searcher(beam=beam, length_penalty=length_penalty, abandoned=abandoned)
        if mbr is not None:
            sampling = sampling or _FOR_MBR
        if rerank is not None:
            rerank = rerank.beside(self.source_language, self.target_language)
        controls = controls or Controls()
        wanted = Wanted(controls, alternatives, sampling, seed, mbr, rerank, align)
        require_possible(wanted, searcher.search.beam)
        asked = [
            self._wording.asked(
                number,
                text,
                controls,
                prefix=prefixes[number] if prefixes else "",
                terms=terms[number] if terms else None,
                original=originals[number] if originals else None,
            )
            for number, text in enumerate(texts)
        ]
        asked = [one for one in asked if one.source]
        finder = Finder(searcher, wanted, restyled=any(one.style is not None for one in asked))
        found: dict[int, list[Translation]] = {}
        for some in finder.helpings(asked):
            ranked = finder.ranked(some, [texts[one.number] for one in some])
            found |= zip((one.number for one in some), ranked, strict=True)
            if progress is not None:
                progress(len(some))
        if progress is not None:
            # Empty texts cost nothing, but whoever counts expects them.
            progress(len(texts) - len(found))
        return [_with_alternatives(found[number]) if number in found else NOTHING for number in range(len(texts))]

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        length_penalty: float | None = None,
        align: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """The targets as translations of the sources, with the scores that the search would have given them.

        An empty source has one translation, the empty one.
        """
        require_texts(sources, "sources")
        require_texts(targets, "targets")
        require_as_many(len(sources), "sources", len(targets), "targets")
        searcher = self._makings.searcher(length_penalty=length_penalty)
        # Of one source, several translations may be asked about.
        encoded = {text: self._wording.source(text) for text in dict.fromkeys(sources)}
        asked = [
            Asked(
                number,
                encoded[source],
                target=self._wording.target(target, source),
                style=self._wording.style(source, begun=target),
            )
            for number, (source, target) in enumerate(zip(sources, targets, strict=True))
            if encoded[source]
        ]
        found = [_of_nothing(target) for target in targets]
        for batch in searcher.batches(asked, rows=1):
            for one, hypothesis in zip(batch, searcher.read(batch, looks=align), strict=True):
                found[one.number] = searcher.told(one, hypothesis, aligned=align)
            if progress is not None:
                progress(len(batch))
        if progress is not None:
            progress(len(sources) - len(asked))
        return found

    def stream(
        self, text: str, *, prefix: str = "", controls: Controls | None = None, original: str | None = None
    ) -> Stream:
        """The greedy translation as it grows, whole characters at a time; the original as in `translate`."""
        if self._wording.right_to_left:
            raise ConfigError("this run writes the last word first, so there is nothing to show before all is written")
        require_texts([text, prefix], "texts")
        controls = controls or Controls()
        asked = self._wording.asked(0, text, controls, prefix, original=original)
        return Stream(growing(self._makings.searcher(beam=1), asked, controls))

    def continuations(
        self,
        text: str,
        prefix: str,
        *,
        count: int,
        align: bool = False,
        abandoned: Callable[[], bool] | None = None,
    ) -> list[Translation]:
        """Translations that begin with the prefix and go on with different words, the likeliest word first.

        Behind a prefix that ends in a space, or behind none, a word begins; otherwise its last word may go on.
        `abandoned` is asked before each step whether nobody waits for them any more: then there are none.
        """
        require_texts([text, prefix], "texts")
        first = self._wording.asked(0, text, Controls(), prefix)
        if not first.source:
            return []
        searcher = self._makings.searcher(abandoned=None if abandoned is None else lambda _: abandoned())
        return continuations(searcher, first, prefix, count=count, align=align)

    @property
    def _wording(self) -> Wording:
        return self._makings.wording


def _with_alternatives(ranked: list[Translation]) -> Translation:
    if not ranked:
        return _GIVEN_UP
    best, *others = ranked
    return dataclasses.replace(best, alternatives=tuple(others))


def _of_nothing(target: str) -> Translation:
    """How an empty source is translated: by nothing."""
    text = normalise(target)
    return Translation(text, -math.inf, complete=True) if text else NOTHING
