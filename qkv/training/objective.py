"""What training makes smaller: the smoothed cross-entropy of the target, given the source."""

from __future__ import annotations

from torch import Tensor, nn

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


class Objective(nn.Module):
    """The loss as a module, which is what the library's ways to train in several processes begin with."""

    def __init__(self, model: EncoderDecoder, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, part: PairBatch) -> tuple[Tensor, Tensor]:
        loss = translation_loss(self.model, part, smoothing=self.smoothing)
        return loss.total, loss.surprise
