"""Multi-head attention (section 3.2.2), the only place where positions meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qkv.layers.kernels import Kernel, Recording, fused
from qkv.layers.positions import Turn
from qkv.layers.visibility import Visible

Projections = Callable[[Tensor, Sequence[nn.Linear]], tuple[Tensor, ...]]
"""Several projections of the same input."""


def apart(x_RWD: Tensor, projections: Sequence[nn.Linear]) -> tuple[Tensor, ...]:
    """Each projection by itself."""
    return tuple(projection(x_RWD) for projection in projections)


Turned = Callable[[Tensor, Tensor, nn.Module, Turn], Tensor]


def normed_and_turned(x_RHWE: Tensor, positions_RW: Tensor, norm: nn.Module, turn: Turn) -> Tensor:
    """Queries or keys as they meet: normed, then turned by their positions."""
    return turn(norm(x_RHWE), positions_RW)


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
        self.project: Projections = apart
        self.turned: Turned = normed_and_turned

    def look(self, x_RWD: Tensor, positions_RW: Tensor) -> tuple[Tensor, KeyValues]:
        """The queries of x, and its keys and values: a row that looks at itself."""
        query, key, value = self.project(x_RWD, (self.query, self.key, self.value))
        return self._queries(query, positions_RW), self.key_values(key, value, positions_RW)

    def ask(self, x_RWD: Tensor, positions_RW: Tensor) -> Tensor:
        """The queries of x alone."""
        return self._queries(self.query(x_RWD), positions_RW)

    def remember(self, x_RKD: Tensor, positions_RK: Tensor) -> KeyValues:
        """The keys and values of x alone, for queries to look at."""
        key, value = self.project(x_RKD, (self.key, self.value))
        return self.key_values(key, value, positions_RK)

    def key_values(self, key: Tensor, value: Tensor, positions_RK: Tensor) -> KeyValues:
        """What can be looked at, of keys and values as they come from their projections."""
        key_RHKE = self.turned(self._by_head(key), positions_RK, self.key_norm, self.turn)
        return KeyValues(key_RHKE, self._by_head(value))

    def forward(self, query_RHWE: Tensor, memory: KeyValues, visible: Visible | None) -> Tensor:
        """The queries look at the memory; a memory of fewer rows serves equally many rows of queries each."""
        # The beams of a sentence share its memory: they look at it as if they were one row of more positions.
        R, H, W, E = query_RHWE.shape
        N = memory.key_RHKE.size(0)
        together = query_RHWE.view(N, R // N, H, W, E).transpose(1, 2).reshape(N, H, R // N * W, E)
        mixed = self.kernel(together, memory.key_RHKE, memory.value_RHKU, visible)
        mixed_RWHU = mixed.view(N, H, R // N, W, -1).permute(0, 2, 3, 1, 4).flatten(0, 1)
        y_RWD: Tensor = self.output(mixed_RWHU.flatten(2))
        return y_RWD

    def _queries(self, query: Tensor, positions_RW: Tensor) -> Tensor:
        return self.turned(self._by_head(query), positions_RW, self.query_norm, self.turn)

    def _by_head(self, x_RWD: Tensor) -> Tensor:
        return x_RWD.view(*x_RWD.shape[:2], self.heads, -1).transpose(1, 2)


@contextmanager
def recording(model: nn.Module, only: Collection[str] | None = None) -> Iterator[dict[str, Recording]]:
    """Inside, every attention of the model, or only some, keeps its weights by its name:
    `{"decoder.blocks.0.cross_attention": Recording}`."""
    attentions = {
        name: part
        for name, part in model.named_modules()
        if isinstance(part, MultiHeadAttention) and (only is None or name in only)
    }
    kernels = {name: attention.kernel for name, attention in attentions.items()}
    recordings = {name: Recording() for name in attentions}
    for name, attention in attentions.items():
        attention.kernel = recordings[name]
    try:
        yield recordings
    finally:
        for name, attention in attentions.items():
            attention.kernel = kernels[name]
