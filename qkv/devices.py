"""Which device the work is done on, and in which numbers."""

from __future__ import annotations

import importlib.util

import torch

from qkv.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The device of this name; `auto` is the first GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"no device is called {name!r}; try auto, cpu, cuda or cuda:1") from error
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is not one that qkv works on; try auto, cpu, cuda or cuda:1")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs on this machine")
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The numbers that products are computed in; `auto` is bfloat16 on GPUs that have it, else float32."""
    if name == "auto":
        fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if fast else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def choose_kernels(name: str, device: torch.device) -> bool:
    """Whether a GPU's own twins of the plain parts are used; `auto` uses them where they can be."""
    if name == "plain":
        return False
    can = device.type == "cuda" and importlib.util.find_spec("triton") is not None
    if name == "fast" and not can:
        raise ConfigError("training.kernels=fast needs a GPU and Triton, which comes with torch for GPUs; try auto")
    return can
