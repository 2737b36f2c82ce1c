"""What training makes smaller: the smoothed cross-entropy of the target, given the source."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from qkv.config import TrainingConfig
from qkv.data.batch import PairBatch
from qkv.layers.loss import Loss, agreeing_cross_entropy, smoothed_cross_entropy
from qkv.models.encoder_decoder import EncoderDecoder


class Goal(NamedTuple):
    """What counts in the loss beside the target."""

    smoothing: float
    agreement: float = 0.0

    @classmethod
    def of(cls, options: TrainingConfig) -> Goal:
        return cls(options.label_smoothing, options.agreement)


def translation_loss(model: EncoderDecoder, batch: PairBatch, goal: Goal) -> Loss:
    """The loss of a batch: every target token is to be told from the source and the tokens before it."""
    # Two readings from which nothing is left out are the same.
    if goal.agreement and model.inputs.dropout.now:
        return _agreeing_loss(model, batch, goal)
    x_RWD, _ = model.read(batch.target, model.start(batch.source))
    return smoothed_cross_entropy(
        x_RWD.flatten(0, 1),
        model.inputs.weight_VD,
        batch.label_RW.flatten(),
        smoothing=goal.smoothing,
        chunks=model.loss_chunks,
    )


def _agreeing_loss(model: EncoderDecoder, batch: PairBatch, goal: Goal) -> Loss:
    """The same of two readings, in which dropout leaves out other numbers: they are to agree."""
    twice = batch.twice()
    x_RWD, _ = model.read(twice.target, model.start(twice.source))
    return agreeing_cross_entropy(
        x_RWD.flatten(0, 1),
        model.inputs.weight_VD,
        twice.label_RW.flatten(),
        smoothing=goal.smoothing,
        agreement=goal.agreement,
        width=x_RWD.size(1),
        chunks=model.loss_chunks,
    )


class Objective(nn.Module):
    """The loss as a module, which is what the library's ways to train in several processes begin with."""

    def __init__(self, model: EncoderDecoder, goal: Goal) -> None:
        super().__init__()
        self.model = model
        self.goal = goal

    def forward(self, part: PairBatch) -> tuple[Tensor, Tensor]:
        loss = translation_loss(self.model, part, self.goal)
        return loss.total, loss.surprise
