"""What only a GPU can do; kernels by themselves are in tests/layers/gpu, which compiles them where there is one.

python3 -m pytest tests/gpu tests/layers/gpu
"""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    return torch.device("cuda")
