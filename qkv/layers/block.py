"""A block, and a stack of them (section 3.1): the encoder and the decoder are both made of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from torch import Tensor, nn

from qkv.layers.attention import KeyValues, MultiHeadAttention, Projections, apart
from qkv.layers.residual import PostNorm, PreNorm, Through
from qkv.layers.visibility import Visible

Attending = Callable[[MultiHeadAttention, Tensor], Tensor]
"""What an attention makes of its input, output projection included."""


class Block(nn.Module):
    """Attention within the row, attention to a memory where there is one, and a feed-forward network."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feed_forward: nn.Module,
        residual: Callable[[], PostNorm | PreNorm],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self_attention = residual()
        self.cross_attention = cross_attention
        self.around_cross_attention = None if cross_attention is None else residual()
        self.feed_forward = feed_forward
        self.around_feed_forward = residual()

    def forward(
        self,
        x_RWD: Tensor,
        beside_RWD: Tensor | None,
        positions_RW: Tensor,
        visible: Visible | None,
        past: KeyValues | None,
        memory: KeyValues | None,
        memory_visible: Visible | None,
    ) -> tuple[Tensor, Tensor, KeyValues]:
        """The row and what flows beside it one block on, and the keys and values of all its positions so far."""
        seen: list[KeyValues] = []

        def within(attention: MultiHeadAttention, inner_RWD: Tensor) -> Tensor:
            query_RHWE, present = attention.look(inner_RWD, positions_RW)
            seen.append(present if past is None else past.append(present))
            y_RWD: Tensor = attention(query_RHWE, seen[0], visible)
            return y_RWD

        def across(attention: MultiHeadAttention, inner_RWD: Tensor) -> Tensor:
            assert memory is not None
            y_RWD: Tensor = attention(attention.ask(inner_RWD, positions_RW), memory, memory_visible)
            return y_RWD

        x_RWD, beside_RWD = self.through(x_RWD, beside_RWD, within, across)
        return x_RWD, beside_RWD, seen[0]

    def through(
        self, x_RWD: Tensor, beside_RWD: Tensor | None, within: Attending, across: Attending
    ) -> tuple[Tensor, Tensor]:
        """The same, where others say how its attentions look within the row and across to the memory."""
        around = self.around_self_attention
        x_RWD, inner_RWD = around.before(x_RWD, beside_RWD)
        x_RWD, beside_RWD = around.after(x_RWD, within(self.self_attention, inner_RWD))

        if self.cross_attention is not None and self.around_cross_attention is not None:
            around = self.around_cross_attention
            x_RWD, inner_RWD = around.before(x_RWD, beside_RWD)
            x_RWD, beside_RWD = around.after(x_RWD, across(self.cross_attention, inner_RWD))

        around = self.around_feed_forward
        x_RWD, inner_RWD = around.before(x_RWD, beside_RWD)
        return around.after(x_RWD, self.feed_forward(inner_RWD))


class Stack(nn.Module):
    """Blocks one after the other, and the norm that pre-norm blocks leave to the end."""

    def __init__(self, blocks: Sequence[Block], last: PreNorm | Through) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.last = last
        self.project: Projections = apart

    def remember(self, memory_RKD: Tensor, positions_RK: Tensor) -> tuple[KeyValues, ...]:
        """The keys and values that each block's attention to this memory will look at."""
        found = [cast(Block, block).cross_attention for block in self.blocks]
        attentions = [attention for attention in found if attention is not None]
        parts = self.project(memory_RKD, [one for attention in attentions for one in (attention.key, attention.value)])
        return tuple(
            attention.key_values(key, value, positions_RK)
            for attention, key, value in zip(attentions, parts[0::2], parts[1::2], strict=True)
        )

    def forward(
        self,
        x_RWD: Tensor,
        positions_RW: Tensor,
        visible: Visible | None,
        past: Sequence[KeyValues] | None = None,
        memory: Sequence[KeyValues] | None = None,
        memory_visible: Visible | None = None,
    ) -> tuple[Tensor, tuple[KeyValues, ...]]:
        seen = []
        beside_RWD: Tensor | None = None
        for number, block in enumerate(self.blocks):
            x_RWD, beside_RWD, seen_by_block = block(
                x_RWD,
                beside_RWD,
                positions_RW,
                visible,
                past[number] if past else None,
                memory[number] if memory else None,
                memory_visible,
            )
            seen.append(seen_by_block)
        _, y_RWD = self.last.before(x_RWD, beside_RWD)
        return y_RWD, tuple(seen)
