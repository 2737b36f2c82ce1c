"""Translating text with a trained run: `Translator.load("run").translate(["Hello."])`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qkv.checkpoint import RunDirectory
from qkv.config import Config, SearchConfig
from qkv.data.batch import Packed, one_sentence_a_row
from qkv.devices import choose_device
from qkv.errors import CheckpointError, ConfigError
from qkv.models.build import assemble, quicken
from qkv.models.encoder_decoder import EncoderDecoder, State
from qkv.progress import tell
from qkv.search.beam import beam_search, paper_penalty
from qkv.search.sample import Sampling, sample
from qkv.search.step import Hypothesis, Limits
from qkv.text.cleaning import normalise
from qkv.text.subwords import Tokenizer


@dataclass(frozen=True)
class Translation:
    """A translation and how it ranked; `alternatives` are the other ones of an n-best list, best first."""

    text: str
    score: float
    """Log-probability over the length penalty; closer to zero is better."""
    complete: bool
    """False where the length limit cut it off."""
    alternatives: tuple[Translation, ...] = ()


_EMPTY = Translation("", 0.0, complete=True)
_SEEDS = 1 << 63
_QUOTED = 30


class Translator:
    """A model, its tokenizer and how to search; text in, text out."""

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizer: Tokenizer,
        search: SearchConfig,
        *,
        longest: int | None = None,
        target_language: str | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._search = search
        self._longest = min(search.longest_source, longest or search.longest_source)
        self.target_language = target_language
        self._warn = warn or _warn
        self._device = next(model.parameters()).device

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Translator:
        """The translator of a run directory: its final weights, or the newest checkpoint's while it is training."""
        run = RunDirectory.open(Path(path))
        config = run.config()
        where = choose_device(device)
        saved = run.weights()
        if not run.tokenizer_file.is_file():
            raise CheckpointError(
                f"{run.tokenizer_file} is missing; give the command that trained the run again, or copy the file from "
                "the data it was trained on"
            )
        tokenizer = Tokenizer.load(run.tokenizer_file)
        run.require_model(config.model, saved.directory, saved.state)
        if saved.state.get("tokenizer") != tokenizer.fingerprint:
            raise CheckpointError(
                f"{run.tokenizer_file} is not the tokenizer that {saved.directory} was trained with; put that one back"
            )
        with torch.device("meta"):
            model = assemble(config.model, tokenizer.size)
        try:
            model.load_state_dict(saved.tensors["weights"], assign=True)
        except RuntimeError as error:
            raise CheckpointError(f"the weights in {saved.directory} do not fit {run.config_file}") from error
        model.to(where)
        quicken(model)
        return cls.of(model, tokenizer, config)

    @classmethod
    def of(cls, model: EncoderDecoder, tokenizer: Tokenizer, config: Config) -> Translator:
        """The translator of a model with these settings."""
        longest = config.model.longest if config.model.positions == "learned" else None
        return cls(model, tokenizer, config.search, longest=longest, target_language=config.text.target_language)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        alternatives: int = 0,
        sampling: Sampling | None = None,
        seed: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """One translation for each text, in order; an empty text stays empty.

        `alternatives` asks for that many others of each; `sampling` draws instead of searching for the best.
        """
        if isinstance(texts, str):
            raise TypeError("translate takes a list of texts: translate([text])")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"translate takes texts, and texts[{number}] is {text!r}")
        search = self._searching(beam=beam, length_penalty=length_penalty)
        wanted = alternatives + 1
        if alternatives < 0:
            raise ConfigError(f"{alternatives} alternatives cannot be; give 0 or more")
        if wanted > search.beam and sampling is None:
            raise ConfigError(f"the {wanted} best need a beam of at least {wanted}, not {search.beam}")
        if not 0 <= seed < _SEEDS:
            raise ConfigError(f"the seed is {seed}; it must be at least 0 and below 2^63")
        generator = torch.Generator().manual_seed(seed)
        found: dict[int, list[Hypothesis]] = {}
        for batch in self._batches(texts, search.beam if sampling is None else wanted):
            sources = [source for _, source in batch]
            if sampling is None:
                hypotheses = self._look(sources, search, wanted)
            else:
                hypotheses = self._draw(sources, sampling, generator, wanted)
            found |= {number: some for (number, _), some in zip(batch, hypotheses, strict=True)}
            if progress is not None:
                progress(len(batch))
        if progress is not None:
            # Empty texts cost nothing, but whoever counts expects them.
            progress(len(texts) - len(found))
        return [self._translation(found[number]) if number in found else _EMPTY for number in range(len(texts))]

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

    def _look(self, sources: list[list[int]], search: SearchConfig, keep: int) -> list[list[Hypothesis]]:
        return beam_search(
            self._step,
            self._start(sources),
            self._limits(sources),
            width=search.beam,
            penalty=paper_penalty(search.length_penalty),
            keep=keep,
            device=self._device,
        )

    def _draw(
        self, sources: list[list[int]], sampling: Sampling, generator: torch.Generator, count: int
    ) -> list[list[Hypothesis]]:
        repeated = [source for source in sources for _ in range(count)]
        drawn = sample(
            self._step,
            self._start(repeated),
            self._limits(repeated),
            sampling,
            generator=generator,
            device=self._device,
        )
        groups = [drawn[first : first + count] for first in range(0, len(drawn), count)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    @torch.inference_mode()
    def _start(self, sources: list[list[int]]) -> State:
        return self.model.start(one_sentence_a_row(sources, self.tokenizer.padding).to(self._device))

    def _step(self, token_R: Tensor, state: State) -> tuple[Tensor, State]:
        written = state.past[0].key_RHKE.size(2) if state.past else 0
        ids_RW = token_R.unsqueeze(1)
        logits_RWV, state = self.model.step(Packed(ids_RW, torch.full_like(ids_RW, written), None), state)
        return logits_RWV[:, -1], state

    def _limits(self, sources: list[list[int]]) -> Limits:
        return Limits(
            begin=self.tokenizer.begin,
            end=self.tokenizer.end,
            longest=[min(len(source) + self._search.extra_length, self._longest) for source in sources],
            forbidden=self.tokenizer.marks,
        )

    def _translation(self, hypotheses: list[Hypothesis]) -> Translation:
        best, *others = (Translation(self.tokenizer.decode(one.ids), one.score, one.complete) for one in hypotheses)
        return Translation(best.text, best.score, best.complete, tuple(others))


def _warn(message: str) -> None:
    tell(f"qkv: warning: {message}")
