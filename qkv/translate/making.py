"""What a translator is made of: read from a directory, built around a model, or joined from those of several."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.config import Config, SearchConfig
from qkv.directories import require_run, was_exported
from qkv.engines.ensemble import Ensemble
from qkv.engines.exported import load_exported
from qkv.engines.looks import Looks
from qkv.inspecting.opened import Opened
from qkv.progress import warn
from qkv.search.engine import Engine
from qkv.search.whole import WholeSearch
from qkv.text.languages import Direction
from qkv.text.subwords import Tokenizer
from qkv.translate.checks import require_alike, require_device, require_float32
from qkv.translate.directions import SeveralDirectionsError, chosen, directions_of, every
from qkv.translate.looking import Lookable
from qkv.translate.options import Precision
from qkv.translate.searcher import Searcher
from qkv.translate.wording import Wording

if TYPE_CHECKING:
    from qkv.models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class Makings:
    """An engine, its words, its directions, and how to search."""

    engine: Engine[Any]
    wording: Wording
    search: SearchConfig
    directions: tuple[Direction, ...]
    reads_tag: bool
    """Whether a source begins with the tag of the language that is meant."""
    source_language: str | None
    target_language: str | None
    whole: WholeSearch | None
    """Who searches without being asked for every step, if there is one."""
    inside: Opened | None
    """The model to who looks into it, if that can be done."""
    aligns_as_learned: bool
    """Whether its alignments are of the heads that were found to align best, and not of those that usually do."""

    @classmethod
    def of(
        cls,
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
    ) -> Makings:
        """Of a text no more than `longest` tokens are read, and documents are cut where it has more than `learned`.
        Where there are several `directions`, `between` takes one of them; a source begins with a tag then, and if the
        model `reads_tag` with one direction alone."""
        tags: tuple[int, ...] = ()
        directions = directions or ()
        if reads_tag and len(directions) == 1:
            ((source_language, target_language),) = directions
            tags = (tokenizer.tag(target_language),)
        longest = min(search.longest_source, longest or search.longest_source)
        return cls(
            engine,
            Wording(
                tokenizer,
                longest,
                right_to_left,
                warn,
                learned or longest,
                tags,
                plain_marks,
                source_language,
                target_language,
            ),
            search,
            tuple(directions),
            reads_tag or len(directions) > 1,
            source_language,
            target_language,
            whole,
            inside,
            aligns_as_learned,
        )

    def between(self, source: str | None, target: str | None, *, domain: str | None) -> Makings:
        """Those of one direction; where only one fits, a side that nobody names is found."""
        source, target = chosen(self.directions, source, target)
        tokenizer = self.wording.tokenizer
        tags: tuple[int, ...] = (tokenizer.tag(str(target)),) if self.reads_tag else ()
        if domain is not None:
            tags += (tokenizer.domain(domain),)
        wording = dataclasses.replace(self.wording, tags=tags, source_language=source, language=target)
        return dataclasses.replace(self, wording=wording, source_language=source, target_language=target)

    def typeset(self) -> Makings:
        """The same for parts of something typeset."""
        return dataclasses.replace(self, wording=dataclasses.replace(self.wording, typeset=True))

    def in_every_direction(self) -> Makings:
        """The same with directions that were not learned."""
        return dataclasses.replace(self, directions=every(self.directions))

    def searcher(self, *, abandoned: Callable[[int], bool] | None = None, **changes: float | None) -> Searcher:
        """How to search, with what is asked for here in place of the run's; `abandoned` is the searcher's."""
        if len(self.directions) > 1 and self.target_language is None:
            raise SeveralDirectionsError(self.directions)
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        languages = self.source_language, self.target_language
        return Searcher(
            self.engine,
            self.wording,
            dataclasses.replace(self.search, **given),
            self.whole,
            abandoned,
            lookable=None if self.inside is None else Lookable(self.inside, *languages),
        )


def loaded(path: Path, device: str, precision: Precision) -> Makings:
    """Those of an exported model, or of a run."""
    if was_exported(path):
        require_float32(precision, path)
        require_device(device, path)
        exported = load_exported(path)
        inside = Opened.exported(path, exported.config.model, exported.tokenizer)
        return _with_settings(*exported, inside=inside)
    require_run(path, "name one that `qkv train` has made, or a model of `qkv export`")
    # Only who translates with a run needs torch.
    from qkv.engines.load import load_run, whole_search

    run = load_run(path, device)
    whole = whole_search(run.model, precision)
    if whole is None:
        require_float32(precision, path)
    return around(*run, whole=whole)


def around(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    config: Config,
    looks: Looks | None,
    directory: Path | None,
    *,
    whole: WholeSearch | None,
) -> Makings:
    """Those of a model with these settings; `directory` is that of its checkpoint, if there is one."""
    from qkv.engines.plain import PlainEngine

    engine = PlainEngine(model, tokenizer.padding, looks=looks)
    inside = None if directory is None else Opened.checkpoint(directory, config.model, tokenizer)
    return _with_settings(engine, tokenizer, config, looks, whole=whole, inside=inside)


def _with_settings(
    engine: Engine[Any],
    tokenizer: Tokenizer,
    config: Config,
    looks: Looks | None,
    *,
    whole: WholeSearch | None = None,
    inside: Opened | None = None,
) -> Makings:
    return Makings.of(
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


def together(named: Mapping[str, Makings]) -> Makings:
    """Those of an ensemble, which searches as the first one does; names are told where they do not fit together."""
    (name, first), *others = named.items()
    for other, one in others:
        require_alike(name, first.wording, other, one.wording)
    if not others:
        return first
    wordings = [one.wording for one in named.values()]
    return Makings.of(
        Ensemble([one.engine for one in named.values()]),
        first.wording.tokenizer,
        first.search,
        longest=min(one.longest for one in wordings),
        learned=min(one.learned for one in wordings),
        source_language=first.source_language,
        target_language=first.target_language,
        directions=[way for way in first.directions if all(way in one.directions for one in named.values())],
        reads_tag=first.reads_tag,
        right_to_left=first.wording.right_to_left,
        plain_marks=first.wording.plain_marks,
        aligns_as_learned=all(one.aligns_as_learned for one in named.values()),
    )
