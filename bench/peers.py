"""Other systems' training steps on the same sentences, each as its users run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.marian import BEGIN, END, PADDING, marian, padded
from qkv.config import Config
from qkv.data.corpus import Corpus
from qkv.layers.loss import IGNORED
from qkv.settings import settings


class PaddedBatch(NamedTuple):
    """Sentences of about the same length, a row each."""

    source: Tensor
    target: Tensor
    label: Tensor

    def ready_for(self, device: torch.device) -> PaddedBatch:
        """Where a GPU can fetch it while it works."""
        return PaddedBatch(*(tensor.pin_memory() for tensor in self)) if device.type == "cuda" else self

    def to(self, device: torch.device) -> PaddedBatch:
        return PaddedBatch(*(tensor.to(device, non_blocking=True) for tensor in self))

    @property
    def tokens(self) -> int:
        """Of both sides, padding not counted."""
        return int((self.source != PADDING).sum() + (self.label != IGNORED).sum())


def fill(batches: Sequence[PaddedBatch]) -> float:
    """The share of their positions that are no padding."""
    return sum(batch.tokens for batch in batches) / sum(batch.source.numel() + batch.label.numel() for batch in batches)


def sorted_batches(corpus: Corpus, tokens: int, *, count: int) -> list[PaddedBatch]:
    """Batches of at most so many target tokens, of sentences sorted by length; as many as asked for, which are about as
    full as all of them: where lengths change, a few are half empty.

    Sources are sorted too: up among targets of one length, down among those of the next, so that where a batch has both
    its sources are alike nonetheless.
    """
    lengths, sources = corpus.target_lengths() + 1, corpus.source_lengths() + 1
    up_and_down = np.where(lengths % 2 == 0, sources, -sources)
    order = np.lexsort((up_and_down, lengths))
    starts = [0]
    for place, pair in enumerate(order):
        if (place + 1 - starts[-1]) * lengths[pair] > tokens:
            starts.append(place)
    batches = np.split(order, starts[1:])
    # From the emptiest to the fullest, equally far apart, and then in any order.
    by_fill = np.argsort([_filled(lengths[one]) + _filled(sources[one]) for one in batches])
    places = ((np.arange(count) + 0.5) * len(batches) / count).astype(int)
    chosen = np.random.default_rng(1).permutation(by_fill[places])
    return [_batch(corpus, batches[number]) for number in chosen]


def _filled(lengths: np.ndarray[Any, Any]) -> float:
    """The share that is no padding when all are padded to the longest."""
    return float(lengths.mean() / lengths.max())


def _batch(corpus: Corpus, numbers: np.ndarray[Any, Any]) -> PaddedBatch:
    pairs = [corpus.pair(int(number)) for number in numbers]
    return PaddedBatch(
        padded([[*source, END] for source, _ in pairs], filler=PADDING),
        padded([[BEGIN, *target] for _, target in pairs], filler=PADDING),
        padded([[*target, END] for _, target in pairs], filler=IGNORED),
    )


def marian_logits(config: Config, vocabulary: int) -> tuple[nn.Module, Callable[[PaddedBatch], Tensor]]:
    """transformers' MarianMTModel with its default attention, which is torch's."""
    model = marian(config.model, vocabulary, positions=2 * config.data.row_width)

    def logits(batch: PaddedBatch) -> Tensor:
        mask = (batch.source != PADDING).long()
        output = model(input_ids=batch.source, attention_mask=mask, decoder_input_ids=batch.target, use_cache=False)
        return output.logits  # type: ignore[no-any-return]

    return model, logits


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with what its tutorial puts around it: embeddings (shared), sinusoids, an output layer.

    Its dropout is also inside attention and feed-forward networks, where neither qkv nor Marian has any.
    """

    def __init__(self, config: Config, vocabulary: int) -> None:
        super().__init__()
        model = config.model
        self.embedding = nn.Embedding(vocabulary, model.width, padding_idx=PADDING)
        nn.init.normal_(self.embedding.weight, std=model.width**-0.5)
        self.dropout = nn.Dropout(model.dropout)
        self.transformer = nn.Transformer(
            model.width, model.heads, model.encoder_layers, model.decoder_layers, model.hidden, model.dropout,
            batch_first=True,
        )  # fmt: skip
        position = torch.arange(2 * config.data.row_width).unsqueeze(1)
        angle = position * torch.exp(torch.arange(0, model.width, 2) * (-math.log(10000.0) / model.width))
        self.register_buffer("sinusoids", torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2))

    def inputs(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.sinusoids[: ids.size(1)])  # type: ignore[no-any-return, index]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device, dtype=torch.bool)
        x = self.transformer(
            self.inputs(source),
            self.inputs(target),
            tgt_mask=later,
            src_key_padding_mask=source == PADDING,
            tgt_key_padding_mask=target == PADDING,
            memory_key_padding_mask=source == PADDING,
            tgt_is_causal=True,
        )
        return functional.linear(x, self.embedding.weight)


def torch_logits(config: Config, vocabulary: int) -> tuple[nn.Module, Callable[[PaddedBatch], Tensor]]:
    model = TorchTransformer(config, vocabulary)
    return model, lambda batch: model(batch.source, batch.target)


PEERS = {"transformers' MarianMTModel": marian_logits, "torch.nn.Transformer": torch_logits}

_CHOICES: dict[str, tuple[object, ...]] = {
    "model.residual": ("post",), "model.norm": ("layer",), "model.positions": ("sinusoidal",),
    "model.feed_forward": ("relu",), "model.query_key_norm": ("none",), "model.key_width": (None,),
    "model.value_width": (None,), "training.optimizer": ("adam", "adamw"), "training.agreement": (0,),
}  # fmt: skip
"""What the peers can do of what a recipe may ask for."""


def unlike_peers(config: Config) -> list[str]:
    """The settings that would have qkv do other work than the peers."""
    given = dict(settings(config))
    return [f"{name}={given[name]}" for name, choices in _CHOICES.items() if given[name] not in choices]


def peer_steps(
    name: str, config: Config, vocabulary: int, batches: list[PaddedBatch], device: torch.device
) -> Iterator[int]:
    """Trains a step at a time; each gives the number of real tokens it saw."""
    model, logits = PEERS[name](config, vocabulary)
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = [batch.ready_for(device) for batch in batches]
    while True:
        for batch in batches:
            tokens, batch = batch.tokens, batch.to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = functional.cross_entropy(
                    logits(batch).flatten(0, 1),
                    batch.label.flatten(),
                    ignore_index=IGNORED,
                    label_smoothing=config.training.label_smoothing,
                )
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            yield tokens
