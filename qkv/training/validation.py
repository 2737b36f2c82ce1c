"""How good the model is on sentences it does not learn from."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from qkv.config import Config
from qkv.data.batches import Batches
from qkv.data.corpus import Stretch
from qkv.errors import NotFiniteError
from qkv.evaluate.scores import bleu
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.prepare import Prepared
from qkv.text.files import read_lines
from qkv.text.languages import Direction
from qkv.text.subwords import Tokenizer
from qkv.training.objective import Goal, translation_loss
from qkv.training.reports import perplexity
from qkv.translate import Translator

_SAMPLES = 3
"""Translations that a report of a validation shows."""
_LONGEST_SAMPLE = 400
"""Characters of each."""


class _Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """Ends a validation before it is done."""


class Texts(NamedTuple):
    """Held-out pairs of one direction."""

    direction: Direction | None
    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class Validation:
    """Held-out pairs as batches and as text."""

    batches: Batches
    texts: list[Texts]
    """Of each direction some; of all together, as many as are asked for."""
    tokenizer: Tokenizer
    config: Config

    @classmethod
    def load(cls, prepared: Prepared, batches: Batches, tokenizer: Tokenizer, config: Config) -> Validation:
        wanted = config.training.validation_sentences
        sides = [list(read_lines(path)) for path in prepared.valid_files]
        texts = []
        groups = _by_direction(prepared.corpus("valid").stretches) or {None: np.arange(len(sides[0]))}
        share = -(-wanted // len(groups))
        for direction, pairs in groups.items():
            # Those of one direction come from several corpora, one after the other: all have their share.
            every = pairs[:share] if direction is None else _evenly(pairs, share)
            sources, references = ([side[pair] for pair in every] for side in sides)
            texts += [Texts(direction, sources, references)] if sources else []
        return cls(batches, texts, tokenizer, config)

    @staticmethod
    def can_score() -> bool:
        """Whether the package that computes BLEU is there."""
        return importlib.util.find_spec("sacrebleu") is not None

    @torch.no_grad()
    def run(self, model: EncoderDecoder, *, to_stop: Callable[[], bool] = lambda: False) -> dict[str, Any] | None:
        """Loss and perplexity on all held-out pairs; BLEU of greedy translations of some, and a few as samples.

        None where it was to stop, which is asked after every batch.
        """

        def look(_: int = 0) -> None:
            if to_stop():
                raise _Interrupted

        model.eval()
        try:
            values: dict[str, Any] = self._loss(model, look)
            if self.texts and self.can_score():
                values |= self._quality(model, look)
        except _Interrupted:
            return None
        finally:
            model.train()
        return values

    def _quality(self, model: EncoderDecoder, look: Callable[[int], None]) -> dict[str, Any]:
        """BLEU of all directions on average, and some translations of each beside what they should be."""
        translator = Translator.of(model, self.tokenizer, self.config)
        found, samples = [], []
        each = -(-_SAMPLES // len(self.texts))
        for direction, sources, references in self.texts:
            one = translator if direction is None else translator.between(*direction)
            try:
                translations = one.translate(sources, beam=1, progress=look)
            except NotFiniteError:
                # The loss tells as much; whether to stop is for the loop to say.
                return {"bleu": 0.0}
            texts = [one.text for one in translations]
            found.append(bleu(texts, references))
            # From everywhere: lines of a file are often in some order, and the first ones alike.
            once = np.sort(np.unique(sources, return_index=True)[1])
            samples += [_sample(direction, sources[at], references[at], texts[at]) for at in _evenly(once, each)]
        return {"bleu": sum(found) / len(found), "samples": samples[:_SAMPLES]}

    def _loss(self, model: EncoderDecoder, look: Callable[[], None]) -> dict[str, float]:
        total = surprise = tokens = 0.0
        # What is left out of a model that learns is the only thing that two readings could differ by.
        goal = Goal(self.config.training.label_smoothing)
        for rows in np.array_split(np.arange(len(self.batches.rows)), self._parts()):
            look()
            batch = self.batches.of_rows(rows).to(model.inputs.weight_VD.device)
            loss = translation_loss(model, batch, goal)
            total += loss.total.item()
            surprise += loss.surprise.item()
            tokens += loss.tokens.item()
        return {"loss": total / tokens, "nll": surprise / tokens, "perplexity": perplexity(surprise / tokens)}

    def _parts(self) -> int:
        return -(-len(self.batches.rows) // self.batches.rows_a_step)


def _sample(direction: Direction | None, *texts: str) -> dict[str, str]:
    told = dict(zip(("source", "reference", "text"), (text[:_LONGEST_SAMPLE] for text in texts), strict=True))
    return told | ({} if direction is None else {"from": direction.source, "to": direction.target})


def _by_direction(stretches: Sequence[Stretch]) -> dict[Direction | None, NDArray[np.int64]]:
    """The numbers of the pairs of each direction, where there are several."""
    found: dict[Direction | None, NDArray[np.int64]] = {}
    first = 0
    for stretch in stretches:
        direction = Direction.parse(stretch.direction) if stretch.direction else None
        pairs = np.arange(first, first + stretch.pairs)
        found[direction] = np.concatenate([found[direction], pairs]) if direction in found else pairs
        first += stretch.pairs
    return found


def _evenly(pairs: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    return pairs[np.linspace(0, len(pairs) - 1, min(wanted, len(pairs)), dtype=np.int64)]
