"""Multi-head attention, against torch's own and against itself with the rows written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from qkv.layers.attention import KeyValues, MultiHeadAttention, recording
from qkv.layers.kernels import fused
from qkv.layers.positions import Still
from qkv.layers.visibility import Visible

ROWS, LOOKING, SEEN, WIDTH, HEADS = 2, 5, 7, 12, 3
KEY, VALUE = 8, 10


def attention(key_width: int = KEY, value_width: int = VALUE) -> MultiHeadAttention:
    torch.manual_seed(1)
    return MultiHeadAttention(
        WIDTH,
        HEADS,
        key_width=key_width,
        value_width=value_width,
        projection=nn.Linear,
        norm=lambda _: nn.Identity(),
        turn=Still(),
    )


def vectors(rows: int, positions: int, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, positions, WIDTH, generator=torch.Generator().manual_seed(seed))
    return x, torch.arange(positions).expand(rows, -1)


def key_values(rows: int, positions: int, seed: int) -> KeyValues:
    generator = torch.Generator().manual_seed(seed)
    return KeyValues(
        torch.randn(rows, HEADS, positions, KEY, generator=generator),
        torch.randn(rows, HEADS, positions, VALUE, generator=generator),
    )


@pytest.mark.parametrize("masked", [False, True])
def test_agrees_with_torch(masked: bool) -> None:
    ours = attention(WIDTH // HEADS, WIDTH // HEADS)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    x, x_positions = vectors(ROWS, LOOKING, 2)
    memory, memory_positions = vectors(ROWS, SEEN, 3)
    visible = torch.rand(ROWS, 1, LOOKING, SEEN, generator=torch.Generator().manual_seed(4)) < 0.6
    visible[..., 2] = True
    expected, _ = theirs(
        x, memory, memory, attn_mask=~visible[:, 0].repeat_interleave(HEADS, dim=0) if masked else None
    )
    y = ours(ours.ask(x, x_positions), ours.remember(memory, memory_positions), Visible(visible) if masked else None)
    torch.testing.assert_close(y, expected)


@pytest.mark.parametrize("looking", [1, LOOKING])
def test_a_memory_of_fewer_rows_serves_several_rows_of_queries(looking: int) -> None:
    ours, beams = attention(), 4
    x, positions = vectors(ROWS * beams, looking, 2)
    memory = ours.remember(*vectors(ROWS, SEEN, 3))
    visible = torch.rand(ROWS, 1, 1, SEEN, generator=torch.Generator().manual_seed(4)) < 0.6
    visible[..., 2] = True
    query = ours.ask(x, positions)
    shared = ours(query, memory, Visible(visible))
    repeated = memory.select(torch.arange(ROWS).repeat_interleave(beams))
    torch.testing.assert_close(shared, ours(query, repeated, Visible(visible.repeat_interleave(beams, dim=0))))


def test_appended_positions_come_after_those_before() -> None:
    earlier, later = key_values(ROWS, SEEN, 1), key_values(ROWS, 2, 2)
    both = earlier.append(later)
    assert torch.equal(both.key_RHKE[:, :, :SEEN], earlier.key_RHKE)
    assert torch.equal(both.key_RHKE[:, :, SEEN:], later.key_RHKE)
    assert torch.equal(both.value_RHKU[:, :, :SEEN], earlier.value_RHKU)
    assert torch.equal(both.value_RHKU[:, :, SEEN:], later.value_RHKU)


def test_rows_can_be_selected_in_any_order_several_times_or_not_at_all() -> None:
    some = key_values(3, SEEN, 1)
    selected = some.select(torch.tensor([2, 0, 2, 2]))
    for row, taken in enumerate([2, 0, 2, 2]):
        assert torch.equal(selected.key_RHKE[row], some.key_RHKE[taken])
        assert torch.equal(selected.value_RHKU[row], some.value_RHKU[taken])
    assert some.select(torch.tensor([], dtype=torch.long)).key_RHKE.shape == (0, HEADS, SEEN, KEY)


def test_remembering_in_two_parts_equals_remembering_at_once() -> None:
    ours = attention()
    x, positions = vectors(ROWS, SEEN, 1)
    parts = ours.remember(x[:, :3], positions[:, :3]).append(ours.remember(x[:, 3:], positions[:, 3:]))
    torch.testing.assert_close(parts, ours.remember(x, positions))


def test_a_row_that_looks_at_itself_asks_and_remembers_at_once() -> None:
    ours = attention()
    x, positions = vectors(ROWS, LOOKING, 1)
    query, memory = ours.look(x, positions)
    assert torch.equal(query, ours.ask(x, positions))
    torch.testing.assert_close(memory, ours.remember(x, positions), rtol=0, atol=0)


def test_recording_ends_with_its_block_even_after_an_error() -> None:
    attentions = [attention(), attention()]
    with pytest.raises(ZeroDivisionError), recording(nn.ModuleList(attentions)) as recordings:
        assert [part.kernel for part in attentions] == [recordings["0"], recordings["1"]]
        raise ZeroDivisionError
    assert [part.kernel for part in attentions] == [fused, fused]
