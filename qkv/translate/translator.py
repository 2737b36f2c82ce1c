"""The translator: text becomes ids, a search finds ids, ids become text."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.config import Config, SearchConfig
from qkv.directories import require_run, was_exported
from qkv.engines.ensemble import Ensemble
from qkv.engines.exported import load_exported
from qkv.engines.looks import Looks
from qkv.errors import ConfigError
from qkv.inspecting.opened import Opened
from qkv.progress import warn
from qkv.search.engine import Engine
from qkv.search.sample import Sampling
from qkv.search.whole import WholeSearch
from qkv.text.cleaning import normalise
from qkv.text.languages import Direction
from qkv.text.subwords import Tokenizer
from qkv.translate.asked import Asked
from qkv.translate.checks import require_as_many, require_device, require_float32, require_one_each, require_texts
from qkv.translate.continuing import continuations
from qkv.translate.directions import SeveralDirectionsError, chosen, directions_of, every
from qkv.translate.finding import Finder, Wanted, require_possible
from qkv.translate.looking import Lookable
from qkv.translate.options import Controls, Mbr, Precision, Rerank, Terms
from qkv.translate.searcher import AT_ONCE, Searcher
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

    def __init__(
        self,
        engine: Engine[Any],
        tokenizer: Tokenizer,
        search: SearchConfig,
        *,
        right_to_left: bool,
        longest: int | None = None,
        learned: int | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        directions: Sequence[Direction] | None = None,
        reads_tag: bool = False,
        plain_marks: bool = False,
        warn: Callable[[str], None] = warn,
        whole: WholeSearch | None = None,
        inside: Opened | None = None,
        aligns_as_learned: bool = False,
    ) -> None:
        """Of a text no more than `longest` tokens are read, and documents are cut where it has more than `learned`.
        Where there are several `directions`, `between` gives the translator of one of them; a source begins with a tag
        then, and if the model `reads_tag` with one direction alone. `inside` is the model to who looks into it."""
        self.engine = engine
        self.aligns_as_learned = aligns_as_learned
        """Whether its alignments are of the heads that were found to align best, and not of those that usually do."""
        self._inside = inside
        self._whole = whole
        self._directions = tuple(directions or ())
        self._reads_tag = reads_tag or len(self._directions) > 1
        tags: tuple[int, ...] = ()
        if reads_tag and len(self._directions) == 1:
            ((source_language, target_language),) = self._directions
            tags = (tokenizer.tag(target_language),)
        self.source_language = source_language
        self.target_language = target_language
        self._search = search
        longest = min(search.longest_source, longest or search.longest_source)
        self._wording = Wording(
            tokenizer, longest, right_to_left, warn, learned or longest, tags, plain_marks, target_language
        )

    @property
    def tokenizer(self) -> Tokenizer:
        return self._wording.tokenizer

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
        return cls.joined({str(one): cls._loaded(Path(one), device, precision) for one in (path, *others)})

    @classmethod
    def _loaded(cls, path: Path, device: str, precision: Precision) -> Translator:
        if was_exported(path):
            require_float32(precision, path)
            require_device(device, path)
            exported = load_exported(path)
            inside = Opened.exported(path, exported.config.model, exported.tokenizer)
            return cls._with(*exported, inside=inside)
        require_run(path, "name one that `qkv train` has made, or a model of `qkv export`")
        # Only who translates with a run needs torch.
        from qkv.engines.load import load_run, whole_search

        loaded = load_run(path, device)
        whole = whole_search(loaded.model, precision)
        if whole is None:
            require_float32(precision, path)
        return cls.of(*loaded, whole=whole)

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
        from qkv.engines.plain import PlainEngine

        engine = PlainEngine(model, tokenizer.padding, looks=looks)
        inside = None if directory is None else Opened.checkpoint(directory, config.model, tokenizer)
        return cls._with(engine, tokenizer, config, looks, whole=whole, inside=inside)

    @classmethod
    def _with(
        cls,
        engine: Engine[Any],
        tokenizer: Tokenizer,
        config: Config,
        looks: Looks | None,
        *,
        whole: WholeSearch | None = None,
        inside: Opened | None = None,
    ) -> Translator:
        return cls(
            engine,
            tokenizer,
            config.search,
            longest=config.model.longest if config.model.positions == "learned" else None,
            learned=config.row_width,
            source_language=config.text.source_language,
            target_language=config.text.target_language,
            directions=directions_of(config.text),
            reads_tag=config.text.directions is not None,
            right_to_left=config.text.right_to_left,
            plain_marks=config.data.typography == "plain",
            whole=whole,
            inside=inside,
            aligns_as_learned=looks is not None and looks.are_learned,
        )

    @property
    def directions(self) -> tuple[Direction, ...]:
        """From which languages it translates into which, as far as it knows."""
        return self._directions

    def between(self, source: str | None, target: str | None, *, domain: str | None = None) -> Translator:
        """The translator of one of its directions; where only one fits, a side that nobody names is found.

        `domain` is a kind of text that the model has learned to tell apart.
        """
        source, target = chosen(self._directions, source, target)
        tags: tuple[int, ...] = (self.tokenizer.tag(str(target)),) if self._reads_tag else ()
        if domain is not None:
            tags += (self.tokenizer.domain(domain),)
        one = self._with_wording(tags=tags, language=target)
        one.source_language, one.target_language = source, target
        return one

    @cached_property
    def typeset(self) -> Translator:
        """The same for parts of something typeset: where it would make marks plain (`data.typography`), it prints them.

        It is the same whenever it is asked for: whoever collects texts for a translator knows it again.
        """
        return self._with_wording(typeset=True) if self._wording.plain_marks else self

    def _with_wording(self, **changes: Any) -> Translator:
        one = copy.copy(self)
        one._wording = dataclasses.replace(self._wording, **changes)
        one.__dict__.pop("typeset", None)
        return one

    def in_every_direction(self) -> Translator:
        """The same, asked also for directions that it has not learned, between languages that it has.

        It has no experience of them; that is for finding out whether it needs any.
        """
        one = self._with_wording()
        one._directions = every(self._directions)
        return one

    @classmethod
    def joined(cls, translators: Mapping[str, Translator]) -> Translator:
        """An ensemble of translators, which are named in case they do not fit together."""
        (name, first), *others = translators.items()
        for other, translator in others:
            if translator.tokenizer.fingerprint != first.tokenizer.fingerprint:
                raise ConfigError(
                    f"{other} has not the same vocabulary as {name}, so they cannot translate together; train it with "
                    f"--tokenizer {name}/tokenizer.model"
                )
            if translator._wording.right_to_left != first._wording.right_to_left:
                raise ConfigError(
                    f"one of {name} and {other} writes from right to left, the other does not, so they cannot "
                    "translate together; use one to rerank what the other finds"
                )
            if translator._wording.plain_marks != first._wording.plain_marks:
                raise ConfigError(
                    f"one of {name} and {other} has learned plain quotation marks and apostrophes alone "
                    "(data.typography), the other has not, so they cannot translate together"
                )
        if not others:
            return first
        return cls(
            Ensemble([one.engine for one in translators.values()]),
            first.tokenizer,
            first._search,
            longest=min(one._wording.longest for one in translators.values()),
            learned=min(one._wording.learned for one in translators.values()),
            source_language=first.source_language,
            target_language=first.target_language,
            directions=[one for one in first._directions if all(one in other._directions for _, other in others)],
            reads_tag=first._reads_tag,
            right_to_left=first._wording.right_to_left,
            plain_marks=first._wording.plain_marks,
            aligns_as_learned=all(one.aligns_as_learned for one in translators.values()),
        )

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
        searcher = dataclasses.replace(self._searcher(beam=beam, length_penalty=length_penalty), abandoned=abandoned)
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

    @property
    def at_once(self) -> int:
        """How many texts to give together where there are many: enough to keep a device busy, and to see it go on."""
        return _TEXTS if self._whole is None else AT_ONCE

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
        return self._search.beam

    @property
    def longest_source(self) -> int:
        """How many tokens of a source are read, its end included."""
        return self._wording.longest_source

    @property
    def longest_sentence(self) -> int:
        """How many tokens a sentence may have, its end included, for the model to have learned from such."""
        return self._wording.longest_sentence

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
        searcher = self._searcher(length_penalty=length_penalty)
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
        return Stream(growing(self._searcher(beam=1), asked, controls))

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
        searcher = self._searcher()
        if abandoned is not None:
            searcher = dataclasses.replace(searcher, abandoned=lambda _: abandoned())
        return continuations(searcher, first, prefix, count=count, align=align)

    def _searcher(self, **changes: float | None) -> Searcher:
        """How to search, with what is asked for here in place of the run's."""
        if len(self._directions) > 1 and self.target_language is None:
            raise SeveralDirectionsError(self._directions)
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        languages = self.source_language, self.target_language
        return Searcher(
            self.engine,
            self._wording,
            dataclasses.replace(self._search, **given),
            self._whole,
            lookable=None if self._inside is None else Lookable(self._inside, *languages),
        )


def _with_alternatives(ranked: list[Translation]) -> Translation:
    if not ranked:
        return _GIVEN_UP
    best, *others = ranked
    return dataclasses.replace(best, alternatives=tuple(others))


def _of_nothing(target: str) -> Translation:
    """How an empty source is translated: by nothing."""
    text = normalise(target)
    return Translation(text, -math.inf, complete=True) if text else NOTHING
