"""Multi-head attention (section 3.2.2), the only place where positions meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qkv.layers.kernels import Kernel, Recording, fused
from qkv.layers.positions import Turn


class KeyValues(NamedTuple):
    """What can be looked at: a key and a value for each head and position. A cache is just a longer one."""

    key_RHKE: Tensor
    value_RHKU: Tensor

    def append(self, later: KeyValues) -> KeyValues:
        """These positions, then the later ones."""
        return KeyValues(
            torch.cat([self.key_RHKE, later.key_RHKE], dim=2),
            torch.cat([self.value_RHKU, later.value_RHKU], dim=2),
        )

    def select(self, rows_R: Tensor) -> KeyValues:
        """The given rows in the given order; a row may be taken several times, or not at all."""
        return KeyValues(self.key_RHKE.index_select(0, rows_R), self.value_RHKU.index_select(0, rows_R))


class MultiHeadAttention(nn.Module):
    """Heads that look each in a subspace of their own; `kernel` may be swapped for another of the same signature."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_width: int,
        value_width: int,
        projection: Callable[[int, int], nn.Linear],
        norm: Callable[[int], nn.Module],
        turn: Turn,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = projection(width, heads * key_width)
        self.key = projection(width, heads * key_width)
        self.value = projection(width, heads * value_width)
        self.output = projection(heads * value_width, width)
        self.query_norm = norm(key_width)
        self.key_norm = norm(key_width)
        self.turn = turn
        self.kernel: Kernel = fused

    def remember(self, x_RKD: Tensor, positions_RK: Tensor) -> KeyValues:
        """The keys and values of x, for queries to look at."""
        key_RHKE = self.turn(self.key_norm(self._by_head(self.key(x_RKD))), positions_RK)
        return KeyValues(key_RHKE, self._by_head(self.value(x_RKD)))

    def forward(self, x_RWD: Tensor, positions_RW: Tensor, memory: KeyValues, visible: Tensor | None) -> Tensor:
        """Queries of x look at the memory; a memory of fewer rows serves equally many rows of queries each."""
        query_RHWE = self.turn(self.query_norm(self._by_head(self.query(x_RWD))), positions_RW)
        # The beams of a sentence share its memory: they look at it as if they were one row of more positions.
        N, B, W = memory.key_RHKE.size(0), x_RWD.size(0) // memory.key_RHKE.size(0), x_RWD.size(1)
        together = query_RHWE.view(N, B, self.heads, W, -1).transpose(1, 2).reshape(N, self.heads, B * W, -1)
        mixed = self.kernel(together, memory.key_RHKE, memory.value_RHKU, visible)
        mixed_RWHU = mixed.view(N, self.heads, B, W, -1).permute(0, 2, 3, 1, 4).flatten(0, 1)
        y_RWD: Tensor = self.output(mixed_RWHU.flatten(2))
        return y_RWD

    def _by_head(self, x_RWD: Tensor) -> Tensor:
        return x_RWD.view(*x_RWD.shape[:2], self.heads, -1).transpose(1, 2)


@contextmanager
def recording(model: nn.Module) -> Iterator[dict[str, Recording]]:
    """Inside, every attention of the model keeps its weights: `{"decoder.blocks.0.cross_attention": Recording}`."""
    attentions = {name: part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)}
    kernels = {name: attention.kernel for name, attention in attentions.items()}
    recordings = {name: Recording() for name in attentions}
    for name, attention in attentions.items():
        attention.kernel = recordings[name]
    try:
        yield recordings
    finally:
        for name, attention in attentions.items():
            attention.kernel = kernels[name]
