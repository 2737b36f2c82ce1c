"""The best candidates, against their plain twin."""

from __future__ import annotations

import pytest
import torch

from qkv.layers.candidates import Candidates
from qkv.layers.candidates import best_candidates as plain
from tests.layers.gpu.twins import numbers


def same(ours: Candidates, theirs: Candidates) -> None:
    assert torch.equal(ours.score_NC.isnan(), theirs.score_NC.isnan())
    there = theirs.score_NC > -torch.inf
    assert torch.equal(ours.score_NC > -torch.inf, there)
    torch.testing.assert_close(ours.score_NC[there], theirs.score_NC[there], rtol=0, atol=1e-5)
    assert torch.equal(ours.beam_NC[there], theirs.beam_NC[there])
    assert torch.equal(ours.token_NC[there], theirs.token_NC[there])


@pytest.mark.parametrize(("N", "B", "V"), [(3, 4, 1000), (2, 1, 37), (2, 5, 128), (1, 3, 4500), (1, 4, 37_000)])
def test_they_are_their_twins(device: torch.device, N: int, B: int, V: int) -> None:
    from qkv.layers.gpu.candidates import best_candidates

    logits_RV = 3 * numbers(N * B, V, seed=1, device=device).detach()
    score_NB = numbers(N, B, seed=2, device=device).detach()
    # The first sentence has one hypothesis yet.
    score_NB[0, 1:] = -torch.inf
    barred_V = torch.zeros(V, device=device)
    barred_V[logits_RV[0].topk(2).indices] = -torch.inf
    same(best_candidates(logits_RV, score_NB, barred_V, 2 * B), plain(logits_RV, score_NB, barred_V, 2 * B))


def test_those_there_are_come_first_where_little_may_be_written(device: torch.device) -> None:
    from qkv.layers.gpu.candidates import best_candidates

    logits_RV, score_NB = numbers(4, 300, seed=1, device=device).detach(), torch.zeros(2, 2, device=device)
    barred_V = torch.full((300,), -torch.inf, device=device)
    barred_V[290] = 0
    ours = best_candidates(logits_RV, score_NB, barred_V, 4)
    same(ours, plain(logits_RV, score_NB, barred_V, 4))
    assert (ours.score_NC > -torch.inf).sum(1).tolist() == [2, 2]
    assert (ours.token_NC < 300).all() and (ours.beam_NC < 2).all()


@pytest.mark.parametrize(("what", "every"), [(torch.nan, 2), (torch.inf, 150), (-torch.inf, 1)])
def test_where_a_probability_is_no_number_no_score_is(device: torch.device, what: float, every: int) -> None:
    """Others are none the worse, and hypotheses that are not alive do no harm."""
    from qkv.layers.gpu.candidates import best_candidates

    logits_RV, score_NB = numbers(6, 300, seed=1, device=device).detach(), torch.zeros(3, 2, device=device)
    logits_RV[1, ::every] = what
    logits_RV[3, ::every] = what
    score_NB[1, 1] = -torch.inf
    barred_V = torch.zeros(300, device=device)
    ours = best_candidates(logits_RV, score_NB, barred_V, 4)
    same(ours, plain(logits_RV, score_NB, barred_V, 4))
    assert ours.score_NC.isnan().all(1).tolist() == [True, False, False]
    assert (ours.score_NC[1:] > -torch.inf).all()
