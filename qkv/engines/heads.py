"""Which heads of the decoder tell where a word came from.

Nobody taught them to, and most do not; those that do are found by what they look at. On held-out pairs, a head is good
if the subword of the source it looks at most belongs to the one that is written: if in the training data the two stand
together more often than apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from qkv.data.batch import one_sentence_a_row
from qkv.data.cooccurrence import Cooccurrence
from qkv.layers.attention import recording
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.text.subwords import Tokenizer

_MOST = 4
"""More heads than these never made the mean better."""

Pair = tuple[list[int], list[int]]
Head = tuple[int, int]


class AligningHeads(NamedTuple):
    """The heads whose mean aligns best, and when to ask them."""

    heads: list[Head]
    """As (layer, head)."""
    read: bool
    """Whether a word's own look is that of the step that reads it, and not of the one that writes it."""
    quality: float
    """The mean association of each subword with the one looked at most, from 0 to 1."""


def choose_heads(model: EncoderDecoder, tokenizer: Tokenizer, pairs: list[Pair], known: Cooccurrence) -> AligningHeads:
    """The best head, and those that make the mean with it better still."""
    looks = _Looks(model, tokenizer, pairs, known)
    found = []
    for read in (False, True):
        chosen: list[Head] = []
        quality = -1.0
        while len(chosen) < _MOST:
            others = [head for head in looks.heads if head not in chosen]
            best, head = max((looks.quality([*chosen, head], read=read), head) for head in others)
            if best <= quality:
                break
            quality = best
            chosen.append(head)
        found.append(AligningHeads(chosen, read, quality))
    return max(found, key=lambda one: one.quality)


class _Looks:
    """Where every head looks in some pairs."""

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, pairs: list[Pair], known: Cooccurrence) -> None:
        self._known = known
        self._pairs = pairs
        self._looked: list[dict[Head, Tensor]] = [_looked(model, tokenizer, pair) for pair in pairs]
        self.heads = list(self._looked[0])

    def quality(self, heads: list[Head], *, read: bool) -> float:
        found = []
        for (source, target), looked in zip(self._pairs, self._looked, strict=True):
            # The step that reads a word is the one after that which writes it.
            rows = slice(1, len(target) + 1) if read else slice(0, len(target))
            mean_TK = torch.stack([looked[head][rows, : len(source)] for head in heads]).mean(0)
            seen = np.array(source)[mean_TK.argmax(1).numpy()]
            found.append(self._known.dice(seen, np.array(target)))
        return float(np.concatenate(found).mean())


@torch.no_grad()
def _looked(model: EncoderDecoder, tokenizer: Tokenizer, pair: Pair) -> dict[Head, Tensor]:
    """Each head's weights of cross-attention, a row for each step."""
    source, target = pair
    device = model.inputs.weight_VD.device
    with recording(model, _cross_attentions(model)) as recordings:
        model(
            one_sentence_a_row([[*source, tokenizer.end]], tokenizer.padding).to(device),
            one_sentence_a_row([[tokenizer.begin, *target]], tokenizer.padding).to(device),
        )
    weights = [one.weight_RHWK for one in recordings.values()]
    return {
        (layer, head): weight_RHWK[0, head].float().cpu()
        for layer, weight_RHWK in enumerate(weights)
        if weight_RHWK is not None
        for head in range(weight_RHWK.size(1))
    }


def _cross_attentions(model: EncoderDecoder) -> list[str]:
    return [f"decoder.blocks.{layer}.cross_attention" for layer in range(len(model.decoder.blocks))]
