"""The loss by the library's own functions: slower, larger, and what the chunked one is compared with."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from qkv.layers.loss import IGNORED, Loss


def plain_smoothed_cross_entropy(x_PD: Tensor, weight_VD: Tensor, label_P: Tensor, *, smoothing: float) -> Loss:
    logits_PV = x_PD @ weight_VD.T
    total = functional.cross_entropy(
        logits_PV, label_P, ignore_index=IGNORED, label_smoothing=smoothing, reduction="sum"
    )
    surprise = functional.cross_entropy(logits_PV, label_P, ignore_index=IGNORED, reduction="sum")
    return Loss(total, surprise, (label_P != IGNORED).sum())
