"""Sampling: translations drawn from the model's own probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.errors import ConfigError, NotFiniteError
from qkv.search.step import Hypothesis, Limits, S, Step

_COLDEST = 1e-6
"""A temperature that still divides logits without overflow."""


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn, and how boldly."""

    temperature: float = 1.0
    top_k: int | None = None
    """Draw from this many best tokens only."""
    top_p: float | None = None
    """Draw from the fewest best tokens that have this probability together."""

    def __post_init__(self) -> None:
        if not _COLDEST <= self.temperature < math.inf:
            raise ConfigError(f"temperature is {self.temperature}; it must be above 0, at least {_COLDEST:f}")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k is {self.top_k}; it must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}; it must be above 0 and at most 1")


@torch.inference_mode()
def sample(
    step: Step[S],
    state: S,
    limits: Limits,
    sampling: Sampling,
    *,
    generator: torch.Generator,
    device: torch.device | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each sentence; the same generator gives the same ones."""
    last = torch.full((len(limits.longest),), limits.begin, device=device)
    forbidden = torch.tensor(limits.forbidden, dtype=torch.long, device=device)
    sentences = list(range(len(limits.longest)))
    ids: list[list[int]] = [[] for _ in sentences]
    total = [0.0] * len(sentences)
    complete = [False] * len(sentences)
    while sentences:
        logits_RV, state = step(last, state)
        log_probability_RV = logits_RV.log_softmax(1)
        logits_RV.index_fill_(1, forbidden, -torch.inf)
        chance_RV = _narrowed(logits_RV / sampling.temperature, sampling).softmax(1)
        if chance_RV.isnan().any():
            raise NotFiniteError
        token_R1 = torch.multinomial(chance_RV.to(generator.device), 1, generator=generator).to(logits_RV.device)
        gained = log_probability_RV.gather(1, token_R1).flatten().tolist()
        last = token_R1.flatten()
        left = []
        for row, (sentence, token) in enumerate(zip(sentences, last.tolist(), strict=True)):
            total[sentence] += gained[row]
            complete[sentence] = token == limits.end
            if not complete[sentence]:
                ids[sentence].append(token)
                if len(ids[sentence]) < limits.longest[sentence]:
                    left.append(row)
        if len(left) < len(sentences):
            rows = torch.tensor(left, dtype=torch.long, device=last.device)
            last, state = last[rows], state.select(rows, rows)
            sentences = [sentences[row] for row in left]
    return [Hypothesis(*parts) for parts in zip(ids, total, total, complete, strict=True)]


def _narrowed(logits_RV: Tensor, sampling: Sampling) -> Tensor:
    if sampling.top_k is not None:
        least_R1 = logits_RV.topk(min(sampling.top_k, logits_RV.size(1))).values[:, -1:]
        logits_RV = logits_RV.masked_fill(logits_RV < least_R1, -torch.inf)
    if sampling.top_p is not None:
        sorted_RV, token_RV = logits_RV.sort(descending=True)
        chance_RV = sorted_RV.softmax(1)
        # The best token stays, whatever its probability.
        beyond_RV = chance_RV.cumsum(1) - chance_RV >= sampling.top_p
        logits_RV = logits_RV.masked_fill(beyond_RV.scatter(1, token_RV, beyond_RV), -torch.inf)
    return logits_RV
