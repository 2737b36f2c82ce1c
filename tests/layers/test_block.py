"""Blocks with the paper's parts are torch's encoder or decoder layers."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block, Stack
from qkv.layers.feed_forward import FeedForward
from qkv.layers.positions import Still
from qkv.layers.residual import PostNorm, PreNorm, Through
from qkv.layers.visibility import Visible

ROWS, LOOKING, SEEN, WIDTH, HEADS, HIDDEN = 2, 5, 7, 12, 3, 20
Theirs = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer


def attention() -> MultiHeadAttention:
    return MultiHeadAttention(
        WIDTH,
        HEADS,
        key_width=WIDTH // HEADS,
        value_width=WIDTH // HEADS,
        projection=nn.Linear,
        norm=lambda _: nn.Identity(),
        turn=Still(),
    )


def block(residual: type[PostNorm] | type[PreNorm], *, memory: bool) -> Block:
    return Block(
        attention(),
        attention() if memory else None,
        FeedForward(WIDTH, HIDDEN),
        partial(residual, WIDTH, nn.LayerNorm, dropout=0.0),
    )


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    for part, weight, bias in zip(parts, theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True):
        part.load_state_dict({"weight": weight, "bias": bias})
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_weights(theirs: Theirs, ours: Block) -> None:
    """Weights of theirs, made random where torch begins with zeros and ones."""
    torch.manual_seed(1)
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.5)
    copy_attention(theirs.self_attn, ours.self_attention)
    norms = [theirs.norm1, theirs.norm2]
    around = [ours.around_self_attention, ours.around_feed_forward]
    if isinstance(theirs, nn.TransformerDecoderLayer):
        assert ours.cross_attention is not None and ours.around_cross_attention is not None
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        norms.append(theirs.norm3)
        around.insert(1, ours.around_cross_attention)
    for norm, residual in zip(norms, around, strict=True):
        residual.norm.load_state_dict(norm.state_dict())
    assert isinstance(ours.feed_forward, FeedForward)
    ours.feed_forward.widen.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.narrow.load_state_dict(theirs.linear2.state_dict())


def closing(residual: type[PostNorm] | type[PreNorm]) -> tuple[PreNorm | Through, nn.Module]:
    """What closes our stack, and the norm that does the same to the output of torch's last layer."""
    if residual is PostNorm:
        return Through(), nn.Identity()
    last = PreNorm(WIDTH, nn.LayerNorm, dropout=0.0)
    return last, last.norm


def vectors(positions: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(ROWS, positions, WIDTH, generator=torch.Generator().manual_seed(seed))
    return x, torch.arange(positions).expand(ROWS, -1)


def some_visible(looking: int, seen: int, seed: int) -> Tensor:
    visible = torch.rand(ROWS, 1, looking, seen, generator=torch.Generator().manual_seed(seed)) < 0.5
    visible[..., 0] = True
    return visible


def hidden(visible: Tensor) -> Tensor:
    """The same as torch's layers want it: True where nothing is seen, once for each head."""
    return ~visible[:, 0].repeat_interleave(HEADS, dim=0)


@pytest.mark.parametrize(("residual", "first"), [(PostNorm, False), (PreNorm, True)])
def test_without_memory_blocks_are_torchs_encoder_layers(residual: type[PostNorm] | type[PreNorm], first: bool) -> None:
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=first)
    ours = block(residual, memory=False)
    copy_weights(theirs, ours)
    x, positions = vectors(LOOKING, 2)
    visible = some_visible(LOOKING, LOOKING, 3)
    last, norm = closing(residual)
    stack = Stack([ours, ours], last)
    y, _ = stack(x, positions, Visible(visible))
    torch.testing.assert_close(y, norm(theirs(theirs(x, src_mask=hidden(visible)), src_mask=hidden(visible))))
    y, _ = stack(x, positions, None)
    torch.testing.assert_close(y, norm(theirs(theirs(x))))


@pytest.mark.parametrize(("residual", "first"), [(PostNorm, False), (PreNorm, True)])
def test_with_memory_blocks_are_torchs_decoder_layers(residual: type[PostNorm] | type[PreNorm], first: bool) -> None:
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=first)
    ours = block(residual, memory=True)
    copy_weights(theirs, ours)
    last, norm = closing(residual)
    stack = Stack([ours, ours], last)
    x, positions = vectors(LOOKING, 2)
    memory, memory_positions = vectors(SEEN, 3)
    visible = some_visible(LOOKING, LOOKING, 4).tril()
    memory_visible = some_visible(LOOKING, SEEN, 5)
    seen = stack.remember(memory, memory_positions)
    y, _ = stack(x, positions, Visible(visible), None, seen, Visible(memory_visible))
    masks = {"tgt_mask": hidden(visible), "memory_mask": hidden(memory_visible)}
    torch.testing.assert_close(y, norm(theirs(theirs(x, memory, **masks), memory, **masks)))


@pytest.mark.parametrize("residual", [PostNorm, PreNorm])
def test_dropout_falls_on_what_the_sub_layer_says_and_not_on_the_way_through(
    residual: type[PostNorm] | type[PreNorm],
) -> None:
    """Section 5.4: "to the output of each sub-layer, before it is added to the sub-layer input and normalized"."""
    around = residual(WIDTH, lambda _: nn.Identity(), dropout=0.25)
    x, _ = vectors(SEEN, 1)
    torch.manual_seed(2)
    # Pre-norm adds what was said where the next sub-layer begins.
    normed, _ = around.before(*around.after(x, torch.ones_like(x)))
    said = normed - x
    values = torch.tensor([0.0, 1 / 0.75])
    assert ((said.unsqueeze(-1) - values).abs() < 1e-5).any(-1).all()
    assert (said.abs() < 1e-5).any() and (said.abs() > 1).any()
