"""Batches that grow, against sizes counted one by one."""

from __future__ import annotations

import itertools

import pytest

from qkv.data.ramp import NO_RAMP, Ramp


@pytest.mark.parametrize(
    ("sizes", "steps", "expected"),
    [
        (3, 6, [2, 2, 2, 4, 4, 4, 9, 9]),
        (3, 5, [2, 2, 4, 4, 4, 9, 9]),
        (2, 3, [4, 4, 4, 9, 9]),
        (4, 3, [1, 2, 4, 9]),
        (4, 2, [2, 4, 9]),
        (3, 0, [9, 9]),
    ],
)
def test_every_size_has_an_equal_share_of_the_steps(sizes: int, steps: int, expected: list[int]) -> None:
    """Where there are fewer steps than sizes, the smallest are passed over."""
    assert rows_of_steps(Ramp(sizes, steps), len(expected)) == expected
    assert rows_of_steps(Ramp(sizes, steps), 99)[len(expected) :] == [9] * (99 - len(expected))


def test_without_a_ramp_all_steps_are_alike() -> None:
    assert rows_of_steps(NO_RAMP, 7) == [9] * 7


def rows_of_steps(ramp: Ramp, steps: int) -> list[int]:
    before = [ramp.rows_before(step, 9) for step in range(steps + 1)]
    assert before[0] == 0
    return [after - one for one, after in itertools.pairwise(before)]
