"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import qkv

if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each core: more threads than one in each would fight over the cores.
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# What the tests say depends on the tree alone, not on luck or on how busy the machine is.
hypothesis.settings.register_profile("qkv", deadline=None, derandomize=True)
hypothesis.settings.load_profile("qkv")


@pytest.fixture
def checked_shapes() -> Iterator[None]:
    """While the test runs, every tensor in qkv whose name ends in its dimensions must have them."""
    from tests.shapes import checking_shapes, legend

    with checking_shapes(Path(qkv.__file__).parent, legend()):
        yield
