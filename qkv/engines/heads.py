"""Which heads of the decoder tell where a word came from.

Nobody taught them to, and most do not; those that do are found by what they look at. On held-out pairs, a head is good
if the subword of the source it looks at most belongs to the one that is written: if in the training data the two stand
together more often than apart. Who looks at a tag or at the end tells nothing: those stand in every pair, beside
every frequent word.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from qkv.data.batch import one_sentence_a_row
from qkv.data.cooccurrence import Cooccurrence
from qkv.data.corpus import Corpus
from qkv.engines.load import Loaded
from qkv.engines.looks import Head, Looks
from qkv.engines.plain import cross_attention, usual_looks
from qkv.layers.attention import recording
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.text.subwords import Tokenizer

_HELD_OUT = 200
_KNOWN = 20_000
"""Pairs: enough for the words that matter, and counted in seconds."""
_MOST = 4
"""More heads than these never made the mean better."""

Pair = tuple[list[int], list[int]]


def learn_looks(loaded: Loaded, train: Corpus, valid: Corpus) -> Looks:
    """Chooses by some of the held-out pairs, knowing some of those that were trained on."""
    model, tokenizer, *_ = loaded
    # Evenly: those of one direction stand together.
    numbers = np.linspace(0, len(valid) - 1, min(_HELD_OUT, len(valid)), dtype=np.int64)
    pairs = [pair for pair in map(valid.pair, numbers.tolist()) if all(pair)]
    if not pairs:
        return usual_looks(model)
    return choose_heads(model, tokenizer, pairs, Cooccurrence.of(train, tokenizer.size, pairs=_KNOWN))


def choose_heads(model: EncoderDecoder, tokenizer: Tokenizer, pairs: list[Pair], known: Cooccurrence) -> Looks:
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
        found.append(Looks(chosen, read, quality))
    return max(found, key=lambda one: one.quality)


class _Looks:
    """Where every head looks in some pairs."""

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, pairs: list[Pair], known: Cooccurrence) -> None:
        self._known = known
        self._pairs = [([*source, tokenizer.end], target) for source, target in pairs]
        self._told = np.array([not tokenizer.is_control(token) for token in range(tokenizer.size)])
        self._looked: list[dict[Head, Tensor]] = [_looked(model, tokenizer, pair) for pair in pairs]
        self.heads = list(self._looked[0])

    def quality(self, heads: list[Head], *, read: bool) -> float:
        found = []
        for (source, target), looked in zip(self._pairs, self._looked, strict=True):
            # The step that reads a word is the one after that which writes it.
            rows = slice(1, len(target) + 1) if read else slice(0, len(target))
            mean_TK = torch.stack([looked[head][rows, : len(source)] for head in heads]).mean(0)
            seen = np.array(source)[mean_TK.argmax(1).numpy()]
            found.append(self._known.dice(seen, np.array(target)) * self._told[seen])
        return float(np.concatenate(found).mean())


@torch.no_grad()
def _looked(model: EncoderDecoder, tokenizer: Tokenizer, pair: Pair) -> dict[Head, Tensor]:
    """Each head's weights of cross-attention, a row for each step."""
    source, target = pair
    device = model.inputs.weight_VD.device
    with recording(model, [*map(cross_attention, range(len(model.decoder.blocks)))]) as recordings:
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
