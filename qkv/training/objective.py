"""What training makes smaller: the smoothed cross-entropy of the target, given the source."""

from __future__ import annotations

from qkv.data.batch import PairBatch
from qkv.layers.loss import Loss, smoothed_cross_entropy
from qkv.models.encoder_decoder import EncoderDecoder


def translation_loss(model: EncoderDecoder, batch: PairBatch, *, smoothing: float) -> Loss:
    """The loss of a batch: every target token is to be told from the source and the tokens before it."""
    x_RWD, _ = model.read(batch.target, model.start(batch.source))
    return smoothed_cross_entropy(
        x_RWD.flatten(0, 1),
        model.inputs.weight_VD,
        batch.label_RW.flatten(),
        smoothing=smoothing,
        chunks=model.loss_chunks,
    )
