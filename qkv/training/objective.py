"""What training makes smaller: the smoothed cross-entropy of the target, given the source."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from qkv.data.batch import Packed, PairBatch
from qkv.layers.loss import Loss, smoothed_cross_entropy
from qkv.models.encoder_decoder import EncoderDecoder

Reader = Callable[[Packed, Packed], Tensor]
"""From a source and a target to the decoder's vectors; the part of a step that may be compiled."""


def reader(model: EncoderDecoder) -> Reader:
    def read(source: Packed, target: Packed) -> Tensor:
        x_RWD, _ = model.read(target, model.start(source))
        return x_RWD

    return read


def translation_loss(read: Reader, weight_VD: Tensor, batch: PairBatch, *, smoothing: float) -> Loss:
    """The loss of a batch: every target token is to be told from the source and the tokens before it."""
    x_RWD = read(batch.source, batch.target)
    return smoothed_cross_entropy(x_RWD.flatten(0, 1), weight_VD, batch.label_RW.flatten(), smoothing=smoothing)
