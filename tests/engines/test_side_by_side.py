"""Groups of a batch side by side, against the whole batch at once."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from qkv.engines import side_by_side
from qkv.engines.side_by_side import SideBySide
from qkv.search.engine import Continuations
from tests.engines.exporting import exported
from tests.engines.test_onnx import SHORT, SOURCES, model, searched, walked
from tests.models.families import BEGIN, VOCABULARY


@pytest.fixture(autouse=True)
def _groups_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "_FEWEST", 2)


@pytest.mark.parametrize("cores", [1, 2, 9])
def test_groups_give_what_the_whole_gives(cores: int, tmp_path: Path) -> None:
    engine = exported(tmp_path, model("modern"), "float32")
    groups = SideBySide(engine, cores=cores)
    for (gain_RV, looked_RK), (expected_RV, expected_RK) in zip(
        walked(groups, looks=True), walked(engine, looks=True), strict=True
    ):
        np.testing.assert_allclose(gain_RV, expected_RV, atol=1e-4)
        # What is left may be shorter than what was longest.
        wide = min(looked_RK.shape[1], expected_RK.shape[1])
        np.testing.assert_allclose(looked_RK[:, :wide], expected_RK[:, :wide], atol=1e-5)
        assert not expected_RK[:, wide:].any()


@pytest.mark.parametrize("width", [1, 4])
def test_searches_find_the_same(width: int, tmp_path: Path) -> None:
    engine = exported(tmp_path, model("paper"), "int8", shortlist=SHORT)
    found, expected = searched(SideBySide(engine, cores=2), SOURCES, width), searched(engine, SOURCES, width)
    assert [[one.ids for one in some] for some in found] == [[one.ids for one in some] for some in expected]


def test_cores_are_counted_on_any_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    groups = SideBySide(exported(tmp_path, model("paper"), "float32"))
    assert groups.start(SOURCES).sizes == [3, 2]


def test_what_is_asked_of_rows_goes_to_their_groups(tmp_path: Path) -> None:
    engine = exported(tmp_path, model("paper"), "float32")
    groups = SideBySide(engine, cores=2)
    tokens = np.full(len(SOURCES), BEGIN)
    ours, _ = groups.step(tokens, groups.start(SOURCES))
    expected, _ = engine.step(tokens, engine.start(SOURCES))
    told: list[Continuations] = [ours, expected]
    for one in told:
        one.forbid(np.arange(5)[:, None], np.array([[4, 7]]))
        one.forbid(np.array([1, 4]), np.array([9, 30]))
    np.testing.assert_allclose(ours.everything(), expected.everything(), atol=1e-5)
    assert ours.best(6)[1].tolist() == expected.best(6)[1].tolist()
    rows, some = np.array([4, 0, 3, 1]), np.array([30, 4, 5, VOCABULARY - 1])
    np.testing.assert_allclose(ours.of(rows, some), expected.of(rows, some), atol=1e-5)
    assert ours.looked_RK is None
