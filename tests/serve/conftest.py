"""One exported model, and one server of it for all tests that change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.served import Served, serving


@pytest.fixture(scope="session")
def exported(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy run as a model that needs no torch."""
    from qkv.export import export

    output = tmp_path_factory.mktemp("served") / "model"
    export(toy_run, output, precision="int8")
    return output


@pytest.fixture(scope="session")
def served(exported: Path) -> Iterator[Served]:
    with serving(exported) as server:
        yield server
