"""The best candidates of each sentence, the twin of `layers.candidates`: the logits are read once.

The vocabulary is looked at in groups. One pass finds each group's best logit and the row's normaliser; the best `count`
candidates are then in the `count` groups whose best are the best, and only these are looked at again.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from qkv.layers.candidates import Candidates
from qkv.layers.candidates import best_candidates as plain

GROUP = 128
_AT_ONCE = 32
"""Groups of a row that a program reads in one go."""
_MOST = 64
"""More candidates are quicker found by sorting."""
_MOST_GROUPS = 1 << 15
"""Of all hypotheses of a sentence, which one program chooses from."""


def best_candidates(logits_RV: Tensor, score_NB: Tensor, barred_V: Tensor, count: int) -> Candidates:
    """The twin of `candidates.best_candidates`."""
    (R, V), (N, B) = logits_RV.shape, score_NB.shape
    groups = triton.cdiv(V, GROUP)
    if count > min(_MOST, V) or B * groups > _MOST_GROUPS:
        return plain(logits_RV, score_NB, barred_V, count)
    best = logits_RV.new_empty(R, groups, dtype=torch.float32)
    normaliser_R = logits_RV.new_empty(R, dtype=torch.float32)
    _summarise[(R,)](
        logits_RV, barred_V, best, normaliser_R, V, groups, logits_RV.stride(0),
        AT_ONCE=min(_AT_ONCE, triton.next_power_of_2(groups)), GROUP=GROUP, num_warps=4,
    )  # fmt: skip
    score_NC = score_NB.new_empty(N, count)
    beam_NC, token_NC = (score_NB.new_empty(N, count, dtype=torch.int64) for _ in range(2))
    every = triton.next_power_of_2(B * groups)
    _choose[(N,)](
        logits_RV, barred_V, best, normaliser_R, score_NB, score_NC, beam_NC, token_NC, V, logits_RV.stride(0),
        G=groups, B=B, C=count, ALL=every, WIDE_C=triton.next_power_of_2(count),
        GROUP=GROUP, num_warps=min(16, max(4, every // 1024)),
    )  # fmt: skip
    return Candidates(score_NC, beam_NC, token_NC)


@triton.jit
def _summarise(
    logits, barred, best, normaliser, V, G, stride,
    AT_ONCE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    top_G = tl.full([AT_ONCE], -float("inf"), dtype=tl.float32)
    sum_G = tl.zeros([AT_ONCE], dtype=tl.float32)
    for first in range(0, G, AT_ONCE):
        g = first + tl.arange(0, AT_ONCE)
        v = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        logit_GV = tl.load(logits + v, mask=v < V, other=-float("inf")).to(tl.float32)
        bar_GV = tl.load(barred + v, mask=v < V, other=0.0)
        tl.store(best + row * G + g, tl.max(logit_GV + bar_GV, 1), mask=g < G)
        new_top_G = tl.maximum(top_G, tl.max(logit_GV, 1))
        # Groups past the end have nothing to count from.
        base_G = tl.where(new_top_G == -float("inf"), 0.0, new_top_G)
        sum_G = sum_G * tl.exp(top_G - base_G) + tl.sum(tl.exp(logit_GV - base_G[:, None]), 1)
        top_G = new_top_G
    top = tl.max(top_G, 0)
    # Where nothing is finite this is no number, which says so.
    total = tl.sum(tl.where(sum_G == 0.0, 0.0, sum_G * tl.exp(top_G - top)), 0)
    tl.store(normaliser + row, top + tl.log(total))


@triton.jit
def _choose(
    logits, barred, best, normaliser, score, best_score, best_beam, best_token, V, stride,
    G: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ALL: tl.constexpr, WIDE_C: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    n = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, ALL)
    there = place < B * G
    row = n * B + place // G
    score_P = tl.load(score + row, mask=there, other=-float("inf"))
    normaliser_P = tl.load(normaliser + row, mask=there, other=0.0)
    alive_P = score_P > -float("inf")
    # A number that is finite, and no other, is nothing when taken from itself.
    lost = tl.max(tl.where(alive_P, (normaliser_P - normaliser_P) != 0.0, False).to(tl.int32), 0)
    total_P = (tl.load(best + n * B * G + place, mask=there, other=-float("inf")) - normaliser_P) + score_P
    total_P = tl.where(alive_P, tl.where(lost == 0, total_P, -float("inf")), -float("inf"))

    c = tl.arange(0, WIDE_C)
    chosen_C = tl.full([WIDE_C], -1, dtype=tl.int32)
    for number in range(C):
        highest = tl.max(total_P, 0)
        where = tl.argmax(total_P, 0)
        chosen_C = tl.where(c == number, tl.where(highest > -float("inf"), where, -1), chosen_C)
        total_P = tl.where(place == where, -float("inf"), total_P)

    beam_C = tl.maximum(chosen_C, 0) // G
    token_CV = (tl.maximum(chosen_C, 0) % G)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    there_CV = (chosen_C >= 0)[:, None] & (token_CV < V)
    logit_CV = tl.load(logits + ((n * B + beam_C) * stride)[:, None] + token_CV, mask=there_CV, other=-float("inf"))
    logit_CV = logit_CV.to(tl.float32) + tl.load(barred + token_CV, mask=there_CV, other=0.0)
    gained_CV = logit_CV - tl.load(normaliser + n * B + beam_C)[:, None]
    score_CV = tl.where(there_CV, gained_CV + tl.load(score + n * B + beam_C)[:, None], -float("inf"))
    score_P = tl.reshape(score_CV, [WIDE_C * GROUP])
    beam_P = tl.reshape(tl.broadcast_to(beam_C[:, None], [WIDE_C, GROUP]), [WIDE_C * GROUP])
    token_P = tl.reshape(token_CV, [WIDE_C * GROUP])
    place = tl.arange(0, WIDE_C * GROUP)
    for number in range(C):
        highest = tl.max(score_P, 0)
        where = tl.argmax(score_P, 0)
        tl.store(best_score + n * C + number, tl.where(lost == 0, highest, float("nan")))
        tl.store(best_beam + n * C + number, tl.sum(tl.where(place == where, beam_P, 0), 0))
        tl.store(best_token + n * C + number, tl.sum(tl.where(place == where, token_P, 0), 0))
        score_P = tl.where(place == where, -float("inf"), score_P)
