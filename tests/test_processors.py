"""How many cores there are for this process, whatever the system can say of them."""

from __future__ import annotations

import os

import pytest

from qkv.processors import usable_cores


def test_cores_that_are_kept_for_others_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 3


@pytest.mark.parametrize(("counted", "usable"), [(8, 8), (None, 1)])
def test_where_the_system_does_not_say_all_cores_count(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, usable: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert usable_cores() == usable
