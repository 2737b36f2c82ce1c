"""How parts of one product lie in memory: gradients are made where their inputs lay, so that nothing is copied."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_IN_ONE_GO = 16
"""The most numbers side by side that are read or written in one go."""


def in_pieces(count: int) -> tuple[int, int]:
    """So many numbers as pieces of equal length, and this length, which is a power of two.

    A kernel that multiplies them again knows that a piece is inside or outside as a whole. Of a bare count it would
    know nothing unless 16 divides it, and ask for each number by itself, which takes twice the time and more.
    """
    length = math.gcd(count, _IN_ONE_GO)
    return count // length, length


def row_major(x: Tensor) -> Tensor:
    """The tensor itself, or a copy where the numbers of its last dimension do not lie side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()


def empty_like_parts(parts_RHWE: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Room for as many tensors: in one piece of memory where the given ones fill one, each its own part of it; else
    with a position's heads side by side."""
    places: dict[int, Tensor] = {}
    made = []
    for part in parts_RHWE:
        storage = part.untyped_storage()
        whole = storage.nbytes() // part.element_size()
        beside = [one for one in parts_RHWE if one.untyped_storage().data_ptr() == storage.data_ptr()]
        if whole != sum(one.numel() for one in beside) or not _side_by_side(beside):
            R, H, W, E = part.shape
            made.append(part.new_empty(R, W, H, E).transpose(1, 2))
            continue
        place = places.setdefault(storage.data_ptr(), part.new_empty(whole))
        made.append(place.as_strided(part.shape, part.stride(), part.storage_offset()))
    return tuple(made)


def _side_by_side(parts_RHWE: Sequence[Tensor]) -> bool:
    """Whether no two of these, which share their memory, have a number in common, each position's lying together."""
    ends_at = 0
    for part in sorted(parts_RHWE, key=lambda one: int(one.storage_offset())):
        _, H, _, E = part.shape
        begins_at = int(part.storage_offset())
        if begins_at < ends_at or part.stride()[1::2] != (E, 1):
            return False
        ends_at = begins_at + H * E
    return len({(part.stride(0), part.stride(2)) for part in parts_RHWE}) == 1


def joined(parts: Sequence[Tensor], widths: Sequence[int]) -> Tensor:
    """The parts side by side in their last dimension: without a copy where they lie so already."""
    first = parts[0]
    total = sum(widths)
    storage = first.untyped_storage()
    start = 0
    for part, width in zip(parts, widths, strict=True):
        adjacent = (
            part.untyped_storage().data_ptr() == storage.data_ptr()
            and part.storage_offset() == start
            and part.shape == (*first.shape[:-1], width)
            and part.stride(-1) == 1
            and _rows_are(part, total)
        )
        if not adjacent:
            return torch.cat(list(parts), dim=-1)
        start += width
    return first.as_strided((*first.shape[:-1], total), first.stride(), first.storage_offset())


def _rows_are(part: Tensor, apart: int) -> bool:
    """Whether all dimensions but the last are laid out densely, the rows so far apart."""
    expected = apart
    for size, stride in zip(reversed(part.shape[:-1]), reversed(part.stride()[:-1]), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
