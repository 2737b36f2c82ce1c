"""Kernels are compiled where there is a GPU; elsewhere Triton's interpreter runs them, slowly, on the CPU."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch


@pytest.fixture(autouse=True)
def lanes_that_nobody_stores() -> Iterator[None]:
    """May overflow, of which a GPU says nothing; the interpreter computes with numpy, which warns."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="session")
def device() -> torch.device:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here")
    if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        return torch.device("cuda")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("there is a GPU that torch does not see: kernels are neither compiled nor interpreted")
    return torch.device("cpu")
