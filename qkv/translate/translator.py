"""The translator: text becomes ids, a search finds ids, ids become text."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkv.config import Config, SearchConfig
from qkv.errors import ConfigError
from qkv.progress import tell
from qkv.search.beam import Coverage, beam_search
from qkv.search.engine import Engine
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from qkv.search.rules import NoRepeats, Prefix, Rule, together
from qkv.search.sample import Sampling, sample
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer
from qkv.translate.options import Controls
from qkv.translate.translation import Translation

if TYPE_CHECKING:
    from qkv.models.encoder_decoder import EncoderDecoder


_EMPTY = Translation("", 0.0, complete=True)
_SEEDS = 1 << 63
_QUOTED = 30


class Translator:
    """An engine, its tokenizer and how to search; text in, text out."""

    def __init__(
        self,
        engine: Engine[Any],
        tokenizer: Tokenizer,
        search: SearchConfig,
        *,
        longest: int | None = None,
        target_language: str | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self._search = search
        self._longest = min(search.longest_source, longest or search.longest_source)
        self.target_language = target_language
        self._warn = warn or _warn

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Translator:
        """The translator of a run directory: its final weights, or the newest checkpoint's while it is training."""
        # Only who translates with a run needs torch.
        from qkv.engines.load import load_run

        return cls.of(*load_run(Path(path), device))

    @classmethod
    def of(cls, model: EncoderDecoder, tokenizer: Tokenizer, config: Config) -> Translator:
        """The translator of a model with these settings."""
        from qkv.engines.plain import PlainEngine

        longest = config.model.longest if config.model.positions == "learned" else None
        engine = PlainEngine(model, tokenizer.padding)
        return cls(engine, tokenizer, config.search, longest=longest, target_language=config.text.target_language)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        alternatives: int = 0,
        sampling: Sampling | None = None,
        seed: int = 0,
        prefixes: Sequence[str] | None = None,
        controls: Controls | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """One translation for each text, in order; an empty text stays empty.

        `alternatives` asks for that many others of each; `sampling` draws instead of searching for the best, by random
        numbers that depend on the seed and the text alone; each translation begins with its one of the `prefixes`.
        """
        _require_texts(texts, "texts")
        if prefixes is not None:
            _require_texts(prefixes, "prefixes")
            if len(prefixes) != len(texts):
                raise ConfigError(f"there are {len(prefixes)} prefixes for {len(texts)} texts; give one for each")
        search = self._searching(beam=beam, length_penalty=length_penalty)
        wanted = alternatives + 1
        if alternatives < 0:
            raise ConfigError(f"{alternatives} alternatives cannot be; give 0 or more")
        if wanted > search.beam and sampling is None:
            raise ConfigError(f"the {wanted} best need a beam of at least {wanted}, not {search.beam}")
        if not 0 <= seed < _SEEDS:
            raise ConfigError(f"the seed is {seed}; it must be at least 0 and below 2^63")
        controls = controls or Controls()
        found: dict[int, list[Hypothesis]] = {}
        for batch in self._batches(texts, search.beam if sampling is None else wanted):
            asked = [
                _Asked(source, self._rule(controls, prefixes[number] if prefixes else "")) for number, source in batch
            ]
            if sampling is None:
                hypotheses = self._look(asked, search, controls, wanted)
            else:
                hypotheses = self._draw(asked, sampling, seed, wanted)
            found |= {number: some for (number, _), some in zip(batch, hypotheses, strict=True)}
            if progress is not None:
                progress(len(batch))
        if progress is not None:
            # Empty texts cost nothing, but whoever counts expects them.
            progress(len(texts) - len(found))
        return [self._translation(found[number]) if number in found else _EMPTY for number in range(len(texts))]

    @property
    def longest_source(self) -> int:
        """How many tokens of a source are read, its end included."""
        return self._longest

    def _searching(self, **changes: float | None) -> SearchConfig:
        """How to search, with what is asked for here in place of the run's."""
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self._search, **given)

    def _batches(self, texts: Sequence[str], rows: int) -> Iterator[list[tuple[int, list[int]]]]:
        """Texts as ids with their numbers, those of like length together, as many as the token budget lets."""
        sources = [(number, self._encode(text)) for number, text in enumerate(texts)]
        sources = sorted(((n, ids) for n, ids in sources if ids), key=lambda one: -len(one[1]))
        while sources:
            count = max(1, self._search.batch_tokens // (rows * len(sources[0][1])))
            yield sources[:count]
            sources = sources[count:]

    def _encode(self, text: str) -> list[int]:
        text = normalise(text)
        ids = self.tokenizer.encode(text)
        if len(ids) >= self._longest:
            self._warn(
                f"a text of {len(ids):,} tokens ({text[:_QUOTED]!r}…) is cut: "
                f"only the first {self._longest - 1:,} are translated"
            )
            ids = ids[: self._longest - 1]
        return [*ids, self.tokenizer.end] if ids else []

    def _rule(self, controls: Controls, prefix: str) -> Rule | None:
        rules: list[Rule] = []
        if prefix:
            rules.append(Prefix(tuple(self.tokenizer.encode(normalise(prefix)))))
        if controls.no_repeats_of:
            rules.append(NoRepeats(controls.no_repeats_of))
        return together(rules)

    def _look(self, asked: list[_Asked], search: SearchConfig, controls: Controls, keep: int) -> list[list[Hypothesis]]:
        sources = [one.source for one in asked]
        covers = controls.coverage_penalty > 0
        return beam_search(
            self.engine,
            self.engine.start(sources, wanted=_wanted(asked), looks=covers),
            self._limits(asked),
            width=search.beam,
            penalty=paper_penalty(search.length_penalty),
            keep=keep,
            rules=[one.rule for one in asked],
            coverage=Coverage(controls.coverage_penalty, [*map(len, sources)]) if covers else None,
        )

    def _draw(self, asked: list[_Asked], sampling: Sampling, seed: int, count: int) -> list[list[Hypothesis]]:
        repeated = [one for one in asked for _ in range(count)]
        drawn = sample(
            self.engine,
            self.engine.start([one.source for one in repeated], wanted=_wanted(asked)),
            self._limits(repeated),
            sampling,
            seeds=[(seed, number, *one.seed) for one in asked for number in range(count)],
            rules=[one.rule for one in repeated],
        )
        groups = [drawn[first : first + count] for first in range(0, len(drawn), count)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    def _limits(self, asked: list[_Asked]) -> Limits:
        return Limits(
            begin=self.tokenizer.begin,
            end=self.tokenizer.end,
            longest=[
                min(len(one.source) + self._search.extra_length + (one.rule.left if one.rule else 0), self._longest)
                for one in asked
            ],
            forbidden=self.tokenizer.marks,
        )

    def _translation(self, hypotheses: list[Hypothesis]) -> Translation:
        best, *others = map(self._told, hypotheses)
        return dataclasses.replace(best, alternatives=tuple(others))

    def _told(self, one: Hypothesis) -> Translation:
        ids = [*one.ids, self.tokenizer.end] if one.complete else one.ids
        return Translation(
            self.tokenizer.decode(one.ids),
            one.score,
            one.complete,
            tokens=tuple(self.tokenizer.piece(token) for token in ids),
            token_scores=tuple(one.token_scores),
        )


@dataclass(frozen=True)
class _Asked:
    """A source and what its translation has to keep to."""

    source: list[int]
    rule: Rule | None

    @property
    def seed(self) -> list[int]:
        """A number of the source's own, so that what is drawn for it does not depend on its neighbours."""
        digest = hashlib.sha256(repr(self.source).encode()).digest()
        return [int.from_bytes(digest[:8], "little")]


def _wanted(asked: list[_Asked]) -> set[int]:
    """Tokens that a rule will ask for, however unlikely."""
    return {token for one in asked if one.rule is not None for token in one.rule.vocabulary()}


def _require_texts(texts: Sequence[str], name: str) -> None:
    if isinstance(texts, str):
        raise TypeError(f"translate takes a list of {name}: translate([text])")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"translate takes {name}, and {name}[{number}] is {text!r}")


def _warn(message: str) -> None:
    tell(f"qkv: warning: {message}")
