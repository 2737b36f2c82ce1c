"""Gradients lie where their inputs lay, so that nothing is copied to join them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from qkv.layers.visibility import within_sentences
from tests.layers.gpu.twins import numbers

ROWS, POSITIONS, HEADS, WIDTHS = 2, 5, 3, (16, 16, 32)


def by_head(x: Tensor) -> Tensor:
    return x.view(ROWS, POSITIONS, HEADS, -1).transpose(1, 2)


def flat(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


@pytest.fixture
def layout(device: torch.device) -> Any:
    del device  # Triton is there.
    from qkv.layers.gpu import layout

    return layout


def test_room_for_parts_of_one_product_is_joined_without_a_copy(layout: Any) -> None:
    widths = [HEADS * width for width in WIDTHS]
    parts = torch.zeros(ROWS, POSITIONS, sum(widths)).split_with_sizes(widths, dim=-1)
    made = layout.empty_like_parts([by_head(part) for part in parts])
    for number, one in enumerate(made):
        one.fill_(number)
    whole = layout.joined([flat(one) for one in made], widths)
    assert whole.data_ptr() == made[0].data_ptr()
    assert whole.untyped_storage().nbytes() == whole.numel() * whole.element_size()
    expected = [number for number, width in enumerate(widths) for _ in range(width)]
    assert torch.equal(whole, torch.tensor(expected, dtype=torch.float32).expand_as(whole))


def test_room_for_parts_apart_has_a_positions_heads_side_by_side(layout: Any) -> None:
    parts = [by_head(torch.zeros(ROWS, POSITIONS, 2 * HEADS * 16)[..., : HEADS * 16]) for _ in range(2)]
    for one, part in zip(layout.empty_like_parts(parts), parts, strict=True):
        assert one.shape == part.shape
        assert one.transpose(1, 2).is_contiguous()


def test_parts_that_share_numbers_have_gradients_that_share_none(layout: Any) -> None:
    """As many numbers as the memory that they lie in, by chance: the same half twice, and halves that overlap."""
    width = HEADS * 16
    whole = torch.zeros(ROWS, POSITIONS, 2 * width)
    first, middle, last = (by_head(whole[..., begin : begin + width]) for begin in (0, width // 2, width))
    for parts in ([first, first], [first, middle], [middle, last]):
        made = layout.empty_like_parts(parts)
        for number, one in enumerate(made):
            one.fill_(number)
        assert all(bool((one == number).all()) for number, one in enumerate(made))
    one, other = layout.empty_like_parts([last, first])
    assert one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def test_parts_that_do_not_lie_side_by_side_are_copied(layout: Any) -> None:
    whole = torch.arange(2 * 3 * 7.0).view(2, 3, 7)
    cases = [
        [whole[..., :4].clone(), whole[..., 4:].clone()],
        [whole[..., :4], whole[..., 4:].clone()],
        [whole[..., 3:], whole[..., :3]],
        [whole[:, 1:, :4], whole[:, 1:, 4:]],
        # One after the other in memory, but not row by row.
        [whole.flatten()[:24].view(2, 3, 4), whole.flatten()[24:].view(2, 3, 3)],
        [whole.as_strided((2, 3, 4), (21, 7, 1)), whole.as_strided((2, 3, 3), (7, 14, 1), 4)],
    ]
    for parts in cases:
        joined = layout.joined(parts, [part.size(-1) for part in parts])
        assert torch.equal(joined, torch.cat(parts, -1))
        assert joined.data_ptr() != parts[0].data_ptr()


def test_only_what_is_not_in_rows_is_copied_for_a_kernel(layout: Any) -> None:
    x = torch.zeros(2, 3, 4)
    assert layout.row_major(x.transpose(0, 1)).data_ptr() == x.data_ptr()
    assert layout.row_major(x.transpose(1, 2)).is_contiguous()


class Copies(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what is joined by copying."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        del types
        self.count += function is torch.ops.aten.cat.default
        return function(*arguments, **(options or {}))


def test_the_gradients_of_an_attention_are_joined_without_a_copy(device: torch.device) -> None:
    if device.type == "cuda":
        pytest.skip("a GPU's gradients are made on another thread, where copies are not counted")
    from qkv.layers.gpu import attention, projection

    x = numbers(ROWS, POSITIONS, 12, seed=1, device=device)
    linears = [nn.Linear(12, HEADS * width) for width in WIDTHS]
    where = torch.ones(ROWS, POSITIONS, dtype=torch.long)
    visible = within_sentences(where, where, later=False)
    query, key, value = map(by_head, projection.together(x, linears))
    mixed = attention.tiled(query, key, value, visible)
    with Copies() as copies:
        torch.autograd.grad(mixed.sum(), x)
    assert copies.count == 0


@pytest.mark.parametrize(("count", "pieces"), [(37_000, (4625, 8)), (512, (32, 16)), (24, (3, 8)), (17, (17, 1))])
def test_pieces_are_as_long_as_a_power_of_two_that_divides_the_count(
    layout: Any, count: int, pieces: tuple[int, int]
) -> None:
    assert layout.in_pieces(count) == pieces
