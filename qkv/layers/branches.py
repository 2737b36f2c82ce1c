"""Attention in a search that keeps a tree: what was written is kept once, and every hypothesis sees its own branch.

A sentence has a slot for every position and hypothesis, B slots after B slots; what a hypothesis writes at position t
stays in slot t·B + b, whoever goes on from there. `lane_NBT` tells for each hypothesis, and each position up to the
present one, which of the B slots is its own ancestor. So going on with other hypotheses changes lanes and copies no
keys and values, and all shapes are the same at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from qkv.layers.kernels import fused
from qkv.layers.visibility import Visible


class Slots(NamedTuple):
    """Keys and values of one layer: a tree's, or with positions for slots a source's."""

    key_NSHE: Tensor
    value_NSHU: Tensor


LookBack = Callable[[Tensor, Tensor, Tensor, Slots, Tensor, Tensor], Tensor]
LookAcross = Callable[[Tensor, Slots, Tensor], Tensor]


def look_back(
    query_NBHE: Tensor, key_NBHE: Tensor, value_NBHU: Tensor, past: Slots, lane_NBT: Tensor, written_N: Tensor
) -> Tensor:
    """Puts the present keys and values, at position `written_N`, among the past; each looks back along its branch."""
    N, B, T = lane_NBT.shape
    n_N = torch.arange(N, device=lane_NBT.device)
    slot_NB = written_N.unsqueeze(1) * B + torch.arange(B, device=lane_NBT.device)
    past.key_NSHE[n_N.unsqueeze(1), slot_NB] = key_NBHE
    past.value_NSHU[n_N.unsqueeze(1), slot_NB] = value_NBHU
    own_NBTB = lane_NBT.unsqueeze(3) == torch.arange(B, device=lane_NBT.device)
    there_NT = torch.arange(T, device=lane_NBT.device) <= written_N.unsqueeze(1)
    visible_NBS = (own_NBTB & there_NT[:, None, :, None]).flatten(2)
    return _attended(query_NBHE, past, visible_NBS.unsqueeze(1))


def look_across(query_NBHE: Tensor, memory: Slots, length_N: Tensor) -> Tensor:
    """All hypotheses of a sentence look at its source, which has so many positions."""
    there_NS = torch.arange(memory.key_NSHE.size(1), device=length_N.device) < length_N.unsqueeze(1)
    return _attended(query_NBHE, memory, there_NS[:, None, None, :])


def _attended(query_NBHE: Tensor, slots: Slots, mask: Tensor) -> Tensor:
    query_NHBE, key_NHSE, value_NHSU = (part.transpose(1, 2) for part in (query_NBHE, *slots))
    return fused(query_NHBE, key_NHSE, value_NHSU, Visible(mask)).transpose(1, 2)
