"""How good the model is on sentences it does not learn from."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from qkv.config import Config
from qkv.data.batches import Batches
from qkv.errors import NotFiniteError
from qkv.evaluate.scores import bleu
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.text.files import read_lines
from qkv.text.subwords import Tokenizer
from qkv.training.objective import translation_loss
from qkv.training.reports import perplexity
from qkv.translate import Translator


@dataclass(frozen=True)
class Validation:
    """Held-out pairs as batches and as text."""

    batches: Batches
    sources: list[str]
    references: list[str]
    tokenizer: Tokenizer
    config: Config

    @classmethod
    def load(cls, directory: Path, batches: Batches, tokenizer: Tokenizer, config: Config) -> Validation:
        wanted = config.training.validation_sentences
        sources, references = (
            list(read_lines(directory / f"valid.{side}.txt"))[:wanted] for side in ("source", "target")
        )
        return cls(batches, sources, references, tokenizer, config)

    @staticmethod
    def can_score() -> bool:
        """Whether the package that computes BLEU is there."""
        return importlib.util.find_spec("sacrebleu") is not None

    @torch.no_grad()
    def run(self, model: EncoderDecoder) -> dict[str, float]:
        """Loss and perplexity on all held-out pairs, and BLEU of greedy translations of some."""
        model.eval()
        try:
            values = self._loss(model)
            if self.sources and self.can_score():
                values["bleu"] = self._bleu(model)
        finally:
            model.train()
        return values

    def _bleu(self, model: EncoderDecoder) -> float:
        try:
            translations = Translator.of(model, self.tokenizer, self.config).translate(self.sources, beam=1)
        except NotFiniteError:
            # The loss tells as much; whether to stop is for the loop to say.
            return 0.0
        return bleu([one.text for one in translations], self.references)

    def _loss(self, model: EncoderDecoder) -> dict[str, float]:
        total = surprise = tokens = 0.0
        smoothing = self.config.training.label_smoothing
        for rows in np.array_split(np.arange(len(self.batches.rows)), self._parts()):
            batch = self.batches.of_rows(rows).to(model.inputs.weight_VD.device)
            loss = translation_loss(model, batch, smoothing=smoothing)
            total += loss.total.item()
            surprise += loss.surprise.item()
            tokens += loss.tokens.item()
        return {"loss": total / tokens, "nll": surprise / tokens, "perplexity": perplexity(surprise / tokens)}

    def _parts(self) -> int:
        return -(-len(self.batches.rows) // self.batches.rows_a_step)
