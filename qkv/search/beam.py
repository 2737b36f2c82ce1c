"""Beam search with a length penalty (section 6.1); greedy search is a beam of one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from qkv.errors import NotFiniteError
from qkv.search.step import Hypothesis, Limits, S, Step

Penalty = Callable[[int], float]
"""What a log-probability is divided by, given the number of tokens, the end included."""


def paper_penalty(alpha: float) -> Penalty:
    """((5 + length) / 6)^α, of Wu et al. (2016), which the paper follows."""
    return lambda length: ((5 + length) / 6) ** alpha


@torch.inference_mode()
def beam_search(
    step: Step[S],
    state: S,
    limits: Limits,
    *,
    width: int,
    penalty: Penalty,
    keep: int = 1,
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """The best `keep` hypotheses of each sentence, best first, that a beam of this width finds."""
    beam = _Beam(limits, width, penalty, keep, device)
    token_R = torch.full((len(limits.longest),), limits.begin, device=device)
    while beam.sentences:
        logits, state = step(token_R, state)
        token_R, hypotheses_R, sentences = beam.advance(logits)
        # A beam of one that lost no sentence goes on as it stands: nothing needs to be copied.
        if width > 1 or sentences is not None:
            state = state.select(hypotheses_R, sentences)
    if not all(beam.found):
        raise NotFiniteError
    return [sorted(found, key=lambda one: -one.score)[:keep] for found in beam.found]


class _Beam:
    """The hypotheses still alive, those found, and the sentences that are still being looked at."""

    def __init__(self, limits: Limits, width: int, penalty: Penalty, keep: int, device: torch.device | None) -> None:
        self._limits = limits
        self._width = width
        self._penalty = penalty
        self._keep = keep
        self._forbidden = torch.tensor(limits.forbidden, dtype=torch.long, device=device)
        self.found: list[list[Hypothesis]] = [[] for _ in limits.longest]
        self.sentences = list(range(len(limits.longest)))
        # All hypotheses of a sentence would begin alike: it begins with one.
        self._score_NB = torch.zeros(len(self.sentences), 1, device=device)
        self._ids_NBT = torch.zeros(len(self.sentences), 1, 0, dtype=torch.long, device=device)

    def advance(self, logits_RV: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """One token more: the last tokens, the hypotheses they continue, and the sentences left (None: all)."""
        before = self._ids_NBT
        score_NC, beam_NC, token_NC = self._candidates(logits_RV)
        ended_NC = token_NC == self._limits.end
        alive_NC = score_NC.masked_fill(ended_NC, -torch.inf)
        self._score_NB, place_NB = alive_NC.topk(min(self._width, alive_NC.size(1)))
        beam_NB, token_NB = beam_NC.gather(1, place_NB), token_NC.gather(1, place_NB)
        past_NBT = before.gather(1, beam_NB.unsqueeze(2).expand(-1, -1, before.size(2)))
        self._ids_NBT = torch.cat([past_NBT, token_NB.unsqueeze(2)], dim=2)

        self._collect_ended(before, score_NC, beam_NC, ended_NC)
        self._collect_cut_off()
        offset_N1 = before.size(1) * torch.arange(len(self.sentences), device=beam_NB.device).unsqueeze(1)
        return self._leave_settled(token_NB, beam_NB + offset_N1)

    def _candidates(self, logits_RV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of each sentence: twice the width, so that enough are left if half of them end."""
        N, B = self._score_NB.shape
        normaliser_R = logits_RV.logsumexp(1)
        logits_RV.index_fill_(1, self._forbidden, -torch.inf)
        # The best continuations of a sentence are among the best of each of its hypotheses.
        C = min(2 * self._width, logits_RV.size(1))
        logit_RC, token_RC = logits_RV.topk(C)
        score_RC = logit_RC - normaliser_R.unsqueeze(1) + self._score_NB.view(-1, 1)
        best_NC, place_NC = score_RC.view(N, B * C).topk(min(2 * self._width, B * C))
        return best_NC, place_NC // C, token_RC.view(N, B * C).gather(1, place_NC)

    def _collect_ended(self, ids_NBT: Tensor, score_NC: Tensor, beam_NC: Tensor, ended_NC: Tensor) -> None:
        """Candidates that end, if they are among the best `width`: others would not have been looked at."""
        place = ended_NC[:, : self._width].nonzero()
        length = ids_NBT.size(2) + 1
        for n, c in place.tolist():
            score = score_NC[n, c].item()
            if score > -torch.inf:
                ids = ids_NBT[n, beam_NC[n, c]].tolist()
                self._found(n, Hypothesis(ids, score, score / self._penalty(length), complete=True))

    def _collect_cut_off(self) -> None:
        """Hypotheses that have as many tokens as they may."""
        length = self._ids_NBT.size(2)
        for n, sentence in enumerate(self.sentences):
            if length < self._limits.longest[sentence]:
                continue
            for ids, score in zip(self._ids_NBT[n].tolist(), self._score_NB[n].tolist(), strict=True):
                if score > -torch.inf:
                    self._found(n, Hypothesis(ids, score, score / self._penalty(length), complete=False))

    def _found(self, n: int, hypothesis: Hypothesis) -> None:
        self.found[self.sentences[n]].append(hypothesis)

    def _leave_settled(self, token_NB: Tensor, hypotheses_NB: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Sentences leave when nothing alive can still be among the best."""
        length = self._ids_NBT.size(2)
        best = self._score_NB[:, 0].tolist()
        left = [n for n, sentence in enumerate(self.sentences) if self._hopeful(sentence, best[n], length)]
        if len(left) == len(self.sentences):
            return token_NB.flatten(), hypotheses_NB.flatten(), None
        kept = torch.tensor(left, dtype=torch.long, device=token_NB.device)
        self.sentences = [self.sentences[n] for n in left]
        self._ids_NBT, self._score_NB = self._ids_NBT[kept], self._score_NB[kept]
        return token_NB[kept].flatten(), hypotheses_NB[kept].flatten(), kept

    def _hopeful(self, sentence: int, best: float, length: int) -> bool:
        limit = self._limits.longest[sentence]
        if length >= limit or best == -torch.inf:
            return False
        found = sorted((one.score for one in self.found[sentence]), reverse=True)
        if len(found) < self._keep:
            return True
        if self._width == 1:
            # Greedy search takes the best word, also where that is the end: no penalty makes it look further.
            return False
        # A log-probability only falls from here on; the penalty is kindest at one end or the other.
        hope = max(best / self._penalty(length + 1), best / self._penalty(limit))
        return hope > found[self._keep - 1]
