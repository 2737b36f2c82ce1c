"""Which device, which numbers, which kernels."""

from __future__ import annotations

import pytest
import torch

from qkv.devices import choose_device, choose_kernels, choose_precision
from qkv.errors import ConfigError

CPU = torch.device("cpu")


def test_a_cpu_has_plain_kernels_and_says_so_when_asked_for_others() -> None:
    assert choose_kernels("auto", CPU) is False
    assert choose_kernels("plain", CPU) is False
    with pytest.raises(ConfigError, match=r"training\.kernels=fast needs a GPU and Triton, .*; try auto"):
        choose_kernels("fast", CPU)


def test_a_gpu_has_fast_kernels_where_triton_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    for there in (True, False):
        monkeypatch.setattr("importlib.util.find_spec", lambda _, there=there: object() if there else None)
        assert choose_kernels("auto", gpu) is there
        assert choose_kernels("plain", gpu) is False
    with pytest.raises(ConfigError, match="needs a GPU and Triton"):
        choose_kernels("fast", gpu)


def test_a_cpu_computes_in_float32_unless_told_otherwise() -> None:
    assert choose_device("cpu") == CPU
    assert choose_precision("auto", CPU) == torch.float32
    assert choose_precision("bfloat16", CPU) == torch.bfloat16
