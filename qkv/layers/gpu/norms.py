"""Which norms the kernels know: told by type and parts, for what looks like one of them may compute something else."""

from __future__ import annotations

from typing import TypeGuard

from torch import nn


def is_layer_norm(norm: nn.Module) -> TypeGuard[nn.LayerNorm]:
    """With gain and shift."""
    return type(norm) is nn.LayerNorm and norm.bias is not None


def is_rms_norm(norm: nn.Module) -> TypeGuard[nn.RMSNorm]:
    """With a gain, and an epsilon that does not depend on the precision."""
    return type(norm) is nn.RMSNorm and norm.weight is not None and norm.eps is not None
