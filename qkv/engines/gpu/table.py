"""All that a search on a device knows: tensors that stay where they are, and what a step does to them.

Nothing here looks at a number, so a step can be captured as a graph. A place where nobody sits, or whose sentence is
settled, has no hypothesis alive: its scores are all minus infinity, and steps leave its answers as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from qkv.layers.candidates import Candidates

_OF_A_SENTENCE = (
    "memory_key_NLKHE", "memory_value_NLKHU", "length_N", "longest_N", "past_key_NLSHE", "past_value_NLSHU",
    "written_N", "last_NB", "score_NB", "lane_NBT", "token_NTB", "score_NTB",
    "found_score_NA", "found_words_NA", "found_lane_NAT",
)  # fmt: skip


class Read(NamedTuple):
    """What sources have to say to every layer of the decoder."""

    key_NLKHE: Tensor
    value_NLKHU: Tensor
    length_N: Tensor


class Answers(NamedTuple):
    """The best hypotheses of some sentences: how many words each has, which, and what it scored with each of them."""

    score_NA: Tensor
    words_NA: Tensor
    ids_NAT: Tensor
    score_NAT: Tensor


@dataclass(frozen=True)
class Rules:
    """What holds for every sentence of a table."""

    end: Tensor
    barred_V: Tensor
    """0, or minus infinity for what is never written."""
    penalty_T: Tensor
    """What a log-probability is divided by, for every number of tokens."""


@dataclass(frozen=True)
class Table:
    """Places for N sentences with B hypotheses each; the slots of the past are a tree, as `layers.branches` has it."""

    memory_key_NLKHE: Tensor
    memory_value_NLKHU: Tensor
    length_N: Tensor
    """How many positions the source has."""
    longest_N: Tensor
    """How many tokens may be written, the end included."""
    past_key_NLSHE: Tensor
    past_value_NLSHU: Tensor
    written_N: Tensor
    """The position of the last token; the begin's is 0."""
    last_NB: Tensor
    score_NB: Tensor
    lane_NBT: Tensor
    token_NTB: Tensor
    """What was written in each slot,"""
    score_NTB: Tensor
    """and what the hypothesis that wrote it then scored."""
    found_score_NA: Tensor
    """Of the best hypotheses found so far, best first; minus infinity where there are fewer, and no number where the
    model has blown up."""
    found_words_NA: Tensor
    found_lane_NAT: Tensor
    position_TD: Tensor
    rules: Rules

    @classmethod
    def empty(
        cls, *, sentences: int, size: int, width: int, keep: int, layers: int, heads: int, key_width: int,
        value_width: int, position_TD: Tensor, vocabulary: int, like: Tensor,
    ) -> Table:  # fmt: skip
        """Nobody sits there; keys and values are numbers like those given."""
        N, B, T, A, S = sentences, width, size, keep, size * width
        whole = partial(torch.zeros, device=like.device, dtype=torch.int64)
        return cls(
            memory_key_NLKHE=like.new_zeros(N, layers, T, heads, key_width),
            memory_value_NLKHU=like.new_zeros(N, layers, T, heads, value_width),
            # A softmax over nothing is no number, not even where nobody sits.
            length_N=whole(N).fill_(1),
            longest_N=whole(N),
            past_key_NLSHE=like.new_zeros(N, layers, S, heads, key_width),
            past_value_NLSHU=like.new_zeros(N, layers, S, heads, value_width),
            written_N=whole(N),
            last_NB=whole(N, B),
            score_NB=torch.full((N, B), -torch.inf, device=like.device, dtype=score_precision(like.dtype)),
            lane_NBT=torch.arange(B, device=like.device, dtype=torch.int32)[None, :, None].repeat(N, 1, T),
            token_NTB=whole(N, T, B),
            score_NTB=torch.zeros(N, T, B, device=like.device, dtype=score_precision(like.dtype)),
            found_score_NA=torch.full((N, A), -torch.inf, device=like.device, dtype=torch.float64),
            found_words_NA=whole(N, A),
            found_lane_NAT=whole(N, A, T).int(),
            position_TD=position_TD.clone(),
            rules=Rules(
                end=whole(1),
                barred_V=torch.zeros(vocabulary, device=like.device, dtype=score_precision(like.dtype)),
                penalty_T=torch.ones(size + 1, device=like.device, dtype=torch.float64),
            ),
        )

    def ask(self, *, end: int, forbidden: tuple[int, ...], penalty: Callable[[int], float]) -> None:
        """Sets the rules."""
        size = len(self.rules.penalty_T)
        barred = torch.tensor(forbidden, dtype=torch.int64).to(self.rules.barred_V.device)
        # No hypothesis has no tokens: not even the end.
        penalties = torch.tensor([1.0, *(penalty(length) for length in range(1, size))], dtype=torch.float64)
        self.rules.end.fill_(end)
        self.rules.barred_V.zero_().index_fill_(0, barred, -torch.inf)
        self.rules.penalty_T.copy_(penalties)

    def seat(self, places: Tensor, source: Read, longest_N: Tensor, *, begin: int) -> None:
        """These sentences take these places; they begin with one hypothesis: all of them would begin alike."""
        positions = source.key_NLKHE.size(2)
        self.memory_key_NLKHE[:, :, :positions][places] = source.key_NLKHE
        self.memory_value_NLKHU[:, :, :positions][places] = source.value_NLKHU
        self.length_N[places] = source.length_N
        self.longest_N[places] = longest_N
        self.written_N.index_fill_(0, places, 0)
        self.last_NB.index_fill_(0, places, begin)
        self.score_NB.index_fill_(0, places, -torch.inf)
        self.score_NB[:, 0].index_fill_(0, places, 0.0)
        self.lane_NBT[:, :, 0] = torch.arange(self.lane_NBT.size(1), device=places.device)
        self.found_score_NA.index_fill_(0, places, -torch.inf)

    def alive(self) -> Tensor:
        """Which places have a sentence that is not settled yet."""
        return self.score_NB[:, 0] > -torch.inf

    def move(self, places: Tensor, other: Table) -> None:
        """The sentences at these places go to the first places of another table, and nobody sits at the rest."""
        for name in _OF_A_SENTENCE:
            getattr(other, name)[: len(places)] = getattr(self, name)[places]
        other.score_NB[len(places) :] = -torch.inf

    def answers(self, places: Tensor) -> Answers:
        """The best that was found for these sentences."""
        # The begin, at position 0, is no part of an answer.
        lane_NTA = self.found_lane_NAT[places, :, 1:].transpose(1, 2).long()
        ids_NTA, score_NTA = (part[places, 1:].gather(2, lane_NTA) for part in (self.token_NTB, self.score_NTB))
        return Answers(
            self.found_score_NA[places], self.found_words_NA[places], ids_NTA.transpose(1, 2), score_NTA.transpose(1, 2)
        )

    def advance(self, candidates: Candidates) -> None:
        """Every sentence takes one token more, of the best candidates: twice as many as it has hypotheses."""
        score_NC, beam_NC, token_NC = candidates
        lost_N1 = score_NC[:, :1].isnan()
        score_NC = score_NC.masked_fill(lost_N1, -torch.inf)
        width, T = self.lane_NBT.shape[1:]
        ended_NC = token_NC == self.rules.end
        alive_NC = score_NC.masked_fill(ended_NC, -torch.inf)
        score_NB, place_NB = alive_NC.topk(width)
        beam_NB, token_NB = beam_NC.gather(1, place_NB), token_NC.gather(1, place_NB)
        length_N = self.written_N + 1

        lane_NBT = self.lane_NBT.gather(1, beam_NB.unsqueeze(2).expand(-1, -1, T))
        own_B = torch.arange(width, device=lane_NBT.device, dtype=torch.int32)
        present_NB1 = length_N[:, None, None].expand(-1, width, 1)
        lane_NBT.scatter_(2, present_NB1, own_B[None, :, None].expand_as(present_NB1))
        # What is said where nobody is alive goes to the begin's slot, which no answer is read from.
        heard_N1B = (length_N * self.alive())[:, None, None].expand(-1, 1, width)
        self.token_NTB.scatter_(1, heard_N1B, token_NB.unsqueeze(1))
        self.score_NTB.scatter_(1, heard_N1B, score_NB.unsqueeze(1))

        # Candidates that end count if they are among the best `width`: others would not have been looked at.
        ended_NB = score_NC[:, :width].masked_fill(~ended_NC[:, :width], -torch.inf)
        self._collect(score_NB, ended_NB, beam_NC[:, :width], lane_NBT)
        self.found_score_NA.masked_fill_(lost_N1, torch.nan)
        hopeful_N = self._hopeful(score_NB[:, 0])
        self.score_NB.copy_(score_NB.masked_fill(~hopeful_N.unsqueeze(1), -torch.inf))
        self.last_NB.copy_(token_NB)
        self.lane_NBT.copy_(lane_NBT)
        # Whoever is settled stays where it is, and so within its limit.
        self.written_N.add_(hopeful_N)

    def _collect(self, score_NB: Tensor, ended_NB: Tensor, beam_NB: Tensor, lane_NBT: Tensor) -> None:
        """Keeps the best of those found before, those that end now, and those that have as many tokens as they may."""
        (N, A), B = self.found_score_NA.shape, score_NB.size(1)
        length_N1 = (self.written_N + 1).unsqueeze(1)
        cut_off_NB = score_NB.masked_fill(length_N1 < self.longest_N.unsqueeze(1), -torch.inf)
        # In double precision, as a search on the host has it.
        now = torch.cat([ended_NB, cut_off_NB], 1).double() / self.rules.penalty_T[length_N1]
        best_NA, place_NA = torch.cat([self.found_score_NA, now], 1).topk(A)
        words = torch.cat([self.found_words_NA, self.written_N.unsqueeze(1).expand(N, B), length_N1.expand(N, B)], 1)
        # A hypothesis that ended has the branch of the one it continued.
        lanes = torch.cat([self.found_lane_NAT, self.lane_NBT, lane_NBT], 1)
        number = torch.arange(A + 2 * B, device=place_NA.device).expand(N, -1)
        branch = torch.cat([number[:, :A], A + beam_NB, number[:, A + B :]], 1).gather(1, place_NA)
        self.found_score_NA.copy_(best_NA)
        self.found_words_NA.copy_(words.gather(1, place_NA))
        self.found_lane_NAT.copy_(lanes.gather(1, branch.unsqueeze(2).expand(-1, -1, lanes.size(2))))

    def _hopeful(self, best_N: Tensor) -> Tensor:
        """Which sentences have something alive that can still be among the best."""
        length_N = self.written_N + 1
        worst_N = self.found_score_NA[:, -1]
        if self.last_NB.size(1) == 1:
            # Greedy search takes the best word, also where that is the end: no penalty makes it look further.
            better_N = worst_N == -torch.inf
        else:
            # A log-probability only falls from here on; the penalty is kindest at one end or the other.
            next_N, limit_N = self.rules.penalty_T[length_N + 1], self.rules.penalty_T[self.longest_N]
            better_N = torch.maximum(best_N / next_N, best_N / limit_N) > worst_N
        return (length_N < self.longest_N) & (best_N > -torch.inf) & better_N


def score_precision(model: torch.dtype) -> torch.dtype:
    """What scores are computed in: close candidates are told apart by their last bits."""
    return torch.promote_types(model, torch.float32)
