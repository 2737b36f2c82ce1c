"""Training as one writes it at first: no packing of the loop into parts, no chunks, no checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from qkv.config import Config
from qkv.data.batches import Batches, Marks
from qkv.models.build import build
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.prepare import Prepared


class ByHand(NamedTuple):
    weights: dict[str, Tensor]
    moving: dict[str, Tensor]
    norms: list[float]


def train_by_hand(
    config: Config, data: Path, rate: Callable[[int], float], skipped: frozenset[int] = frozenset()
) -> ByHand:
    """The weights after all steps but the skipped ones; nothing in it is shared with the loop but batches and model."""
    options = config.training
    prepared = Prepared.open(data)
    tokenizer = prepared.tokenizer()
    batches = Batches(
        prepared.corpus("train"),
        width=config.data.row_width,
        rows_a_step=config.rows_a_step,
        marks=Marks(tokenizer.padding, tokenizer.begin, tokenizer.end),
        seed=options.seed,
    )
    model = build(config.model, tokenizer.size, seed=options.seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(options.beta1, options.beta2), eps=options.epsilon)
    moving = {name: one.detach().clone() for name, one in model.named_parameters()}
    norms = []
    for step in range(1, options.steps + 1):
        if step in skipped:
            continue
        batch = batches.of_step(step - 1)
        logits_RWV = model(batch.source, batch.target)
        loss = functional.cross_entropy(
            logits_RWV.flatten(0, 1), batch.label_RW.flatten(), label_smoothing=options.label_smoothing
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norms.append(_clip(model, options.clip))
        optimizer.param_groups[0]["lr"] = rate(step)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(1 - rate(step) * options.weight_decay)
        optimizer.step()
        decay = min(options.moving_average, (1 + step) / (10 + step))
        for name, parameter in model.named_parameters():
            moving[name] = decay * moving[name] + (1 - decay) * parameter.detach()
    return ByHand({name: one.detach() for name, one in model.named_parameters()}, moving, norms)


def _clip(model: EncoderDecoder, largest: float | None) -> float:
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
    if largest is not None and norm > largest:
        for gradient in gradients:
            gradient *= largest / norm
    return norm
