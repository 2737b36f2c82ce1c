"""One small model of every family, and sentences to try it on; no two dimensions have the same size."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from qkv.config import ModelConfig
from qkv.data.batch import Packed, PairBatch
from qkv.models.build import build
from qkv.models.encoder_decoder import EncoderDecoder, State
from qkv.recipes import recipe
from tests.packed import Pair, pair_batch

VOCABULARY, PADDING, BEGIN, END = 37, 0, 1, 2
FIRST_WORD = 3

_SMALL = ModelConfig(width=24, heads=3, hidden=44, encoder_layers=1, decoder_layers=2, dropout=0.0, longest=50)


def _small(**changes: object) -> ModelConfig:
    return dataclasses.replace(_SMALL, **changes)  # type: ignore[arg-type]


def _small_version_of(name: str) -> ModelConfig:
    """The choices of a recipe at a size for tests."""
    sizes = ("width", "heads", "hidden", "encoder_layers", "decoder_layers", "dropout", "longest")
    return dataclasses.replace(recipe(name).model, **{size: getattr(_SMALL, size) for size in sizes})


FAMILIES: dict[str, ModelConfig] = {
    "paper": _small(),
    "pre-norm": _small_version_of("pre-norm"),
    "rms-norm": _small_version_of("rms-norm"),
    "learned": _small_version_of("E-learned"),
    "rotary": _small_version_of("rotary"),
    "gated": _small_version_of("gated"),
    "query-key-norm": _small_version_of("query-key-norm"),
    "biased": _small(projection="biased"),
    "own key and value widths": _small(key_width=6, value_width=10),
    "modern": _small_version_of("modern"),
}

# Two sentences in the first row, three in the second, one in the third, and none in the fourth.
_LENGTHS = [[(3, 5), (4, 2)], [(1, 1), (4, 3), (3, 2)], [(10, 8)], []]
SOURCE_WIDTH, TARGET_WIDTH = 13, 11


def small_model(family: str) -> EncoderDecoder:
    return randomised(FAMILIES[family])


def randomised(config: ModelConfig) -> EncoderDecoder:
    """Norms and biases are random too, so that one that is left out is missed."""
    model = build(config, VOCABULARY, seed=1).eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return model


def some_rows() -> list[list[Pair]]:
    generator = torch.Generator().manual_seed(3)

    def words(length: int) -> list[int]:
        return torch.randint(FIRST_WORD, VOCABULARY, (length,), generator=generator).tolist()

    return [[Pair(words(source), words(target)) for source, target in row] for row in _LENGTHS]


def batch_of(
    rows: list[list[Pair]], *, source_width: int = SOURCE_WIDTH, target_width: int = TARGET_WIDTH
) -> PairBatch:
    return pair_batch(rows, source_width=source_width, target_width=target_width, padding=PADDING, begin=BEGIN, end=END)


def alone(pair: Pair) -> PairBatch:
    """A batch of this pair and nothing else, without padding."""
    return batch_of([[pair]], source_width=len(pair.source) + 1, target_width=len(pair.target) + 1)


def next_token(model: EncoderDecoder, token_R: Tensor, state: State) -> tuple[Tensor, State]:
    """The model as a step of search: one more token of every hypothesis, all as far along as each other."""
    place = state.past[0].key_RHKE.size(2) if state.past else 0
    token_R1 = token_R.unsqueeze(1)
    logits_R1V, state = model.step(Packed(token_R1, torch.full_like(token_R1, place), None), state)
    return logits_R1V.squeeze(1), state
