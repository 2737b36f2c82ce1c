"""A model, its weights and its optimizers put together to take steps by hand, as the loop does it."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from qkv.config import Config, ModelConfig
from qkv.data.batch import PairBatch
from qkv.layers.dropout import Dropout
from qkv.models.build import build, use_gpu_parts
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.averaging import Averaging, MovingAverage
from qkv.training.learner import averaging_of
from qkv.training.objective import Goal
from qkv.training.optimizer import build_optimizers
from qkv.training.processes import Processes
from qkv.training.step import Alone, Outcome, Step
from qkv.training.weights import Weights
from tests.models.families import FAMILIES, FIRST_WORD, VOCABULARY, batch_of
from tests.packed import Pair

CONSTANT = {"schedule": "constant", "warmup_steps": 1, "learning_rate": 1e-2}


class Stepping(NamedTuple):
    config: Config
    model: EncoderDecoder
    weights: Weights
    optimizers: list[torch.optim.Optimizer]
    averaging: Averaging
    step: Step

    def take(self, batch: PairBatch, number: int) -> Outcome:
        outcome = self.step.begin(batch, number)()
        self.step.queue.wait()
        return outcome

    def remembered(self) -> dict[str, Tensor]:
        """Everything that a step may change, copied."""
        found: dict[str, Tensor] = {f"model/{name}": one for name, one in self.model.named_parameters()}
        found |= {f"exact/{name}": one for name, one in self.weights.exact.items()}
        for file, tensors in self.averaging.files({}).items():
            found |= {f"{file}/{name}": one for name, one in tensors.items()}
        for optimizer in self.optimizers:
            for parameter, state in optimizer.state.items():
                found |= {f"{self.weights.name(parameter)}/{what}": one for what, one in state.items()}
        return {name: one.detach().clone() for name, one in found.items()}


def stepping(
    *,
    model: ModelConfig = FAMILIES["paper"],
    device: torch.device | None = None,
    precision: torch.dtype = torch.float32,
    fast: bool = False,
    **training: Any,
) -> Stepping:
    """Ready for its first step; a moving average follows whatever is `final`, unless there is no schedule."""
    config = Config(model=model).with_changes(training={**CONSTANT, **training})
    built = build(config.model, VOCABULARY, seed=config.training.seed).to(device or torch.device("cpu"))
    built.train()
    if fast:
        use_gpu_parts(built)
    weights = Weights(built, precision)
    dropouts = [part for part in built.modules() if isinstance(part, Dropout)]
    products = {f"{name}.weight" for name, part in built.named_modules() if isinstance(part, nn.Linear)}
    optimizers = build_optimizers(config.training, weights.exact, products)
    free = config.training.schedule == "free"
    averaging = averaging_of(config.training, weights.exact) if free else MovingAverage(weights.exact, 0.5)
    gradients = Alone(built, weights, Goal.of(config.training), Processes())
    step = Step(config, gradients, weights, optimizers, averaging, captured=fast, dropouts=dropouts)
    return Stepping(config, built, weights, optimizers, averaging, step)


def with_dropout(probability: float) -> ModelConfig:
    return dataclasses.replace(FAMILIES["paper"], dropout=probability)


def batch(seed: int, rows: int = 4) -> PairBatch:
    """Two sentences a row: some words, and the same backwards."""
    generator = torch.Generator().manual_seed(seed)

    def pair(length: int) -> Pair:
        words = torch.randint(FIRST_WORD, VOCABULARY, (length,), generator=generator).tolist()
        return Pair(words, words[::-1])

    return batch_of([[pair(3 + row % 2), pair(4)] for row in range(rows)])
