"""The best ways to continue the hypotheses of each sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Candidates(NamedTuple):
    """Continuations of each sentence's hypotheses, best first: what they would score, whom they continue, with what."""

    score_NC: Tensor
    """Minus infinity where there are no more; no number where the model has blown up."""
    beam_NC: Tensor
    token_NC: Tensor


Best = Callable[[Tensor, Tensor, Tensor, int], Candidates]


def best_candidates(logits_RV: Tensor, score_NB: Tensor, barred_V: Tensor, count: int) -> Candidates:
    """Of all continuations by tokens that are not barred, so many of the highest score, log-probabilities added up.

    `barred_V` is 0, or minus infinity for what is never written. Where the probabilities of one hypothesis are no
    numbers, no score of its sentence is one.
    """
    N, B = score_NB.shape
    normaliser_NB = logits_RV.logsumexp(1).view(N, B)
    # The best continuations of a sentence are among the best of each of its hypotheses.
    logit_RC, token_RC = (logits_RV + barred_V).topk(min(count, logits_RV.size(1)))
    gained_NBC = logit_RC.view(N, B, -1) - normaliser_NB.unsqueeze(2)
    alive_NB = score_NB > -torch.inf
    lost_N = (alive_NB & ~normaliser_NB.isfinite()).any(1)
    score_NBC = (gained_NBC + score_NB.unsqueeze(2)).masked_fill(~alive_NB.unsqueeze(2), -torch.inf)
    best_NC, place_NC = score_NBC.flatten(1).topk(min(count, score_NBC[0].numel()))
    best_NC = best_NC.masked_fill(lost_N.unsqueeze(1), torch.nan)
    return Candidates(best_NC, place_NC // logit_RC.size(1), token_RC.view(N, -1).gather(1, place_NC))
