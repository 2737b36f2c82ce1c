"""A run that has been trained already, for tests of what happens afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qkv.training import train_prepared
from tests.toy import QUICK, one_thread


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, toy_data: Path) -> Path:
    """A short run with checkpoints of steps 4, 8 and 12."""
    run = tmp_path_factory.mktemp("finished") / "run"
    with one_thread():
        train_prepared(toy_data, run, QUICK)
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the short run, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")
