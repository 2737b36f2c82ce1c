"""Several projections in one product, against each by itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from qkv.layers.attention import apart
from tests.layers.gpu.twins import agree, exact, in_both_precisions, numbers, results

ROWS, POSITIONS, WIDTH, WIDTHS = 2, 5, 6, (4, 7, 3)


@in_both_precisions
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("used", [(0, 1, 2), (1,)])
def test_together_is_each_by_itself(
    device: torch.device, precision: torch.dtype, biased: bool, used: tuple[int, ...]
) -> None:
    from qkv.layers.gpu.projection import together

    torch.manual_seed(1)
    linears = nn.ModuleList([nn.Linear(WIDTH, width, bias=biased) for width in WIDTHS]).to(device, precision)
    x = numbers(ROWS, POSITIONS, WIDTH, seed=2, device=device, precision=precision)
    some = [one for one in linears if isinstance(one, nn.Linear)]
    ours = results(together(x, some), [x, *linears.parameters()], used=used)
    (exact_x,) = exact([x])
    linears.float()
    agree(ours, results(apart(exact_x, some), [exact_x, *linears.parameters()], used=used))
