"""Attention by tiles, against the library's kernel."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from qkv.layers.attention import MultiHeadAttention, apart
from qkv.layers.kernels import fused
from qkv.layers.positions import Still
from qkv.layers.visibility import Visible, within_sentences
from tests.layers.gpu.twins import (
    Lying,
    agree,
    exact,
    in_all_precisions,
    in_both_precisions,
    in_columns,
    in_rows_or_not,
    needs_products,
    numbers,
    results,
)  # fmt: skip

ROWS, HEADS = 3, 2


def segments(positions: int, device: torch.device) -> Tensor:
    """Two sentences and nobody's positions; one sentence that fills the row; and a row of nobody's."""
    rows = torch.zeros(ROWS, positions, dtype=torch.long, device=device)
    rows[0, : positions // 3] = 1
    rows[0, positions // 3 : positions - 2] = 2
    rows[1] = 1
    return rows


def attended(
    looking: int,
    seen: int,
    key_width: int,
    value_width: int,
    device: torch.device,
    precision: torch.dtype,
    heads: int = HEADS,
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        numbers(ROWS, heads, looking, key_width, seed=1, device=device, precision=precision),
        numbers(ROWS, heads, seen, key_width, seed=2, device=device, precision=precision),
        numbers(ROWS, heads, seen, value_width, seed=3, device=device, precision=precision),
    )


def as_wide_as_fits(width: int, positions: int, precision: torch.dtype) -> int:
    """In float32 the heads of long rows are left to the library if they are wider."""
    return 16 if precision == torch.float32 and positions > 64 else width


@in_all_precisions
@pytest.mark.parametrize(
    ("looking", "seen", "later", "key_width", "value_width"),
    [
        (21, 21, True, 16, 32),
        (21, 21, False, 16, 32),
        (16, 16, False, 16, 32),
        (11, 37, True, 16, 32),
        (37, 11, True, 16, 32),
        (1, 5, True, 16, 32),
        # As in training: a row and its heads as wide as the recipes have them.
        (128, 128, True, 64, 64),
        (128, 128, False, 64, 64),
        (101, 128, True, 64, 64),
    ],
)
def test_it_is_the_librarys_attention(
    device: torch.device,
    precision: torch.dtype,
    looking: int,
    seen: int,
    later: bool,
    key_width: int,
    value_width: int,
) -> None:
    from qkv.layers.gpu.attention import tiled

    needs_products(device, precision)
    key_width, value_width = (as_wide_as_fits(width, looking, precision) for width in (key_width, value_width))
    visible = within_sentences(segments(looking, device), segments(seen, device), later=later)
    if looking == 1:
        # Too short for two sentences: nobody looks, at everything.
        visible = within_sentences(torch.zeros_like(segments(1, device)), segments(seen, device), later=later)
    ours = attended(looking, seen, key_width, value_width, device, precision)
    plain = query, key, value = exact(ours)
    found = results([tiled(*ours, visible)], ours)
    assert "mask" not in vars(visible), "the library's attention, which needs a mask, was taken instead"
    agree(found, results([fused(query, key, value, visible)], plain))


@in_both_precisions
@pytest.mark.parametrize(
    ("looking", "seen", "key_width", "value_width", "heads"), [(11, 18, 32, 16, 2), (128, 128, 64, 64, 8)]
)
def test_a_program_may_go_through_several_heads(
    device: torch.device,
    precision: torch.dtype,
    looking: int,
    seen: int,
    key_width: int,
    value_width: int,
    heads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from qkv.layers.gpu import attention

    needs_products(device, precision)
    key_width, value_width = (as_wide_as_fits(width, looking, precision) for width in (key_width, value_width))
    visible = within_sentences(segments(looking, device), segments(seen, device), later=True)
    ours = attended(looking, seen, key_width, value_width, device, precision, heads)
    made = []
    for programs in (1, 1000):
        monkeypatch.setattr(attention, "PROGRAMS", programs)
        made.append(results([attention.tiled(*ours, visible)], ours))
    agree(made[0], made[1])
    plain = query, key, value = exact(ours)
    agree(made[0], results([fused(query, key, value, visible)], plain))


@in_all_precisions
@pytest.mark.parametrize(("looking", "seen", "later"), [(21, 21, False), (11, 37, True)])
def test_scores_whose_powers_are_too_large_for_a_number_are_weighed_all_the_same(
    device: torch.device, precision: torch.dtype, looking: int, seen: int, later: bool
) -> None:
    """Scores in the thousands, of which only the distances from the largest have a power."""
    from qkv.layers.gpu.attention import tiled

    needs_products(device, precision)
    visible = within_sentences(segments(looking, device), segments(seen, device), later=later)
    query, key, value = attended(looking, seen, 16, 32, device, precision)
    ours = query, key, value = ((30 * query).detach().requires_grad_(), (30 * key).detach().requires_grad_(), value)
    found = results([tiled(query, key, value, visible)], ours)
    assert "mask" not in vars(visible), "the library's attention, which needs a mask, was taken instead"
    assert all(bool(one.isfinite().all()) for one in found)
    # A twin in float64, for what float32 rounds off a score grows with it; and its power shows that.
    plain = query, key, value = tuple(one.detach().double().requires_grad_() for one in ours)
    factor = 100 if precision == torch.float32 else 2
    agree(found, results([fused(query, key, value, visible)], plain), factor=factor)


@in_rows_or_not
@pytest.mark.parametrize(("looking", "seen"), [(21, 21), (11, 37)])
def test_what_is_given_and_what_is_asked_may_lie_in_memory_in_any_way(
    device: torch.device, looking: int, seen: int, lying: Lying
) -> None:
    """Sentences as well: a row's in the place of all, or its positions apart."""
    from qkv.layers.gpu.attention import tiled

    ours = attended(looking, seen, 16, 32, device, torch.float32)
    query, key, value = map(in_columns, ours)
    for rows in (lambda one: one[:1].expand(ROWS, -1), in_columns):
        visible = within_sentences(rows(segments(looking, device)), rows(segments(seen, device)), later=True)
        found = results([tiled(query, key, value, visible)], ours, lying=lying)
        assert "mask" not in vars(visible), "the library's attention, which needs a mask, was taken instead"
        agree(found, results([fused(query, key, value, visible)], ours, lying=lying))


def test_what_is_not_seen_has_no_say(device: torch.device) -> None:
    """Whatever stands at later positions and in other sentences, to the last bit."""
    from qkv.layers.gpu.attention import tiled

    query, key, value = attended(12, 12, 16, 16, device, torch.float32)
    where = segments(12, device)
    visible = within_sentences(where, where, later=False)
    before = tiled(query, key, value, visible)
    changed_key, changed_value = key.detach().clone(), value.detach().clone()
    changed_key[0, :, 6:] = 9.0
    changed_value[0, :, 6:] = -9.0
    after = tiled(query, changed_key, changed_value, visible)
    assert torch.equal(after[0, :, :6], before[0, :, :6])
    assert torch.equal(after[1:], before[1:])
    assert (after[0, :, 6:] - before[0, :, 6:]).abs().min() > 1e-3


@pytest.mark.parametrize(
    ("looking", "seen", "key_width", "value_width"),
    [(129, 8, 16, 16), (8, 129, 16, 16), (8, 8, 24, 16), (8, 8, 16, 8), (128, 65, 32, 16), (65, 128, 16, 32)],
)
def test_what_does_not_fit_a_tile_is_the_librarys(
    device: torch.device, looking: int, seen: int, key_width: int, value_width: int
) -> None:
    from qkv.layers.gpu.attention import tiled

    ours = attended(looking, seen, key_width, value_width, device, torch.float32)
    visible = within_sentences(segments(looking, device), segments(seen, device), later=True)
    assert torch.equal(tiled(*ours, visible), fused(*ours, visible))


def test_in_float32_a_tile_as_large_as_that_is_the_librarys_and_a_narrow_one_is_not(device: torch.device) -> None:
    """Which is told by the mask that the library needs."""
    from qkv.layers.gpu.attention import tiled

    where = segments(128, device)
    for precision, width, masked in [
        (torch.float32, 64, True),
        (torch.float32, 16, False),
        (torch.float16, 64, False),
    ]:
        visible = within_sentences(where, where, later=True)
        tiled(*attended(128, 128, width, width, device, precision), visible)
        assert ("mask" in vars(visible)) == masked


def test_without_sentences_it_is_the_librarys(device: torch.device) -> None:
    from qkv.layers.gpu.attention import tiled

    ours = attended(6, 6, 16, 16, device, torch.float32)
    mask = torch.ones(6, 6, dtype=torch.bool, device=device).tril()[None, None]
    assert torch.equal(tiled(*ours, None), fused(*ours, None))
    assert torch.equal(tiled(*ours, Visible(mask)), fused(*ours, Visible(mask)))


@in_all_precisions
@pytest.mark.parametrize("together", [True, False])
def test_with_projections_around_it_all_gradients_are_those_of_the_plain_part(
    device: torch.device, precision: torch.dtype, together: bool
) -> None:
    """Side by side in one piece of memory, or each in its own: gradients lie where their inputs lay."""
    from qkv.layers.gpu import attention, projection

    needs_products(device, precision)
    width, positions = 20, 13
    torch.manual_seed(1)
    plain = MultiHeadAttention(
        width, HEADS, key_width=16, value_width=32, projection=nn.Linear, norm=lambda _: nn.Identity(), turn=Still()
    ).to(device)
    plain.to(precision).float()
    x = numbers(ROWS, positions, width, seed=4, device=device, precision=precision)
    where = segments(positions, device)
    place = torch.arange(positions, device=device).expand(ROWS, -1)
    visible = within_sentences(where, where, later=False)

    made = []
    (exact_x,) = exact([x])
    query, memory = plain.look(exact_x, place)
    made.append(results([plain(query, memory, visible)], [exact_x, *plain.parameters()]))
    plain.to(precision)
    plain.kernel, plain.project = attention.tiled, projection.together if together else apart
    query, memory = plain.look(x, place)
    made.append(results([plain(query, memory, visible)], [x, *plain.parameters()]))
    agree(made[1], made[0], factor=2)


@pytest.mark.parametrize(
    ("own_memory", "width", "precision", "stages"),
    [
        (232_448, 64, torch.bfloat16, 3),  # an H200
        (166_912, 64, torch.bfloat16, 2),  # an A100
        (101_376, 64, torch.bfloat16, 1),  # an RTX 4090
        (232_448, 128, torch.bfloat16, 1),
        (232_448, 64, torch.float32, 1),
        (101_376, 64, torch.float32, 0),
        (166_912, 64, torch.float32, 0),  # forward it would fit, backward it would not
    ],
)
def test_no_more_is_asked_of_a_gpu_than_it_has(
    monkeypatch: pytest.MonkeyPatch, own_memory: int, width: int, precision: torch.dtype, stages: int
) -> None:
    from qkv.layers.gpu import attention

    monkeypatch.setattr(attention, "_own_memory", lambda _: own_memory)
    tile = torch.zeros(1, 1, 16, width, dtype=precision)
    assert attention._stages(tile, tile, tile, tile) == stages
    assert attention._fits(tile, tile, tile) == (stages > 0)
