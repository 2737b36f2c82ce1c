"""Training in several processes that each have all weights: torch's DDP."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from qkv.data.batch import PairBatch
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.training.objective import Goal, Objective
from qkv.training.processes import Processes
from qkv.training.weights import Weights


class Replicated:
    """DDP: every process has all weights, and gradients are averaged while the rest of them are still computed."""

    def __init__(self, model: EncoderDecoder, weights: Weights, goal: Goal, processes: Processes) -> None:
        self.processes = processes
        self._weights = weights
        self._objective = DistributedDataParallel(Objective(model, goal))

    def learn(self, part: PairBatch, tokens: Tensor, *, first: bool) -> tuple[Tensor, Tensor]:
        weights = self._weights
        # In float32 the parts add up where they are; bfloat16 would round the sum at each of them.
        if first or weights.narrow:
            for one in weights.used:
                one.grad = None
        total, surprise = self._objective(part)
        # The library divides by the number of processes.
        torch.autograd.backward(total / tokens * self.processes.count)
        if weights.narrow:
            weights.add_gradients(tuple(one.grad for one in weights.used if one.grad is not None), first=first)
        return total.detach(), surprise

    def norm(self) -> Tensor:
        return nn.utils.get_total_norm(self._weights.gradients())
