"""A block, and a stack of them (section 3.1): the encoder and the decoder are both made of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from torch import Tensor, nn

from qkv.layers.attention import KeyValues, MultiHeadAttention
from qkv.layers.residual import PostNorm, PreNorm


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
        positions_RW: Tensor,
        visible: Tensor | None,
        past: KeyValues | None,
        memory: KeyValues | None,
        memory_visible: Tensor | None,
    ) -> tuple[Tensor, KeyValues]:
        """The row one block on, and the keys and values of all its positions so far."""
        around = self.around_self_attention
        inner_RWD = around.before(x_RWD)
        present = self.self_attention.remember(inner_RWD, positions_RW)
        seen = present if past is None else past.append(present)
        x_RWD = around.after(x_RWD, self.self_attention(inner_RWD, positions_RW, seen, visible))

        if self.cross_attention is not None and self.around_cross_attention is not None:
            assert memory is not None
            around = self.around_cross_attention
            inner_RWD = around.before(x_RWD)
            x_RWD = around.after(x_RWD, self.cross_attention(inner_RWD, positions_RW, memory, memory_visible))

        around = self.around_feed_forward
        return around.after(x_RWD, self.feed_forward(around.before(x_RWD))), seen


class Stack(nn.Module):
    """Blocks one after the other, and the norm that pre-norm blocks leave to the end."""

    def __init__(self, blocks: Sequence[Block], last: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.last = last

    def remember(self, memory_RKD: Tensor, positions_RK: Tensor) -> tuple[KeyValues, ...]:
        """The keys and values that each block's attention to this memory will look at."""
        attentions = [cast(Block, block).cross_attention for block in self.blocks]
        return tuple(attention.remember(memory_RKD, positions_RK) for attention in attentions if attention is not None)

    def forward(
        self,
        x_RWD: Tensor,
        positions_RW: Tensor,
        visible: Tensor | None,
        past: Sequence[KeyValues] | None = None,
        memory: Sequence[KeyValues] | None = None,
        memory_visible: Tensor | None = None,
    ) -> tuple[Tensor, tuple[KeyValues, ...]]:
        seen = []
        for number, block in enumerate(self.blocks):
            x_RWD, seen_by_block = block(
                x_RWD,
                positions_RW,
                visible,
                past[number] if past else None,
                memory[number] if memory else None,
                memory_visible,
            )
            seen.append(seen_by_block)
        return self.last(x_RWD), tuple(seen)
