"""A batch that is found by trying it out fits a GPU's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qkv.config import Config
from qkv.devices import memory_limited
from qkv.prepare import Prepared, prepare
from qkv.run import RunDirectory
from qkv.training import fitting, train_prepared
from qkv.training.feeding import batches_of
from qkv.training.fitting import fitted
from qkv.training.processes import Processes
from tests import toy

FREE = 3 << 30
"""As on a smaller GPU: quickly filled."""

AUTO = toy.QUICK.with_changes(
    model={"width": 256, "heads": 4, "hidden": 1024, "encoder_layers": 3, "decoder_layers": 3},
    data={"row_width": 64},
    training={
        "tokens_per_batch": "auto", "device": "cuda", "steps": 8, "save_every": 4, "validate_every": 4,
        "validation_sentences": 20, "final": "moving",
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    corpus = toy.write_tsv(folder / "corpus.tsv", toy.pairs(60_000))
    return prepare([corpus], folder / "data", AUTO).directory


@pytest.mark.parametrize("kernels", ["fast", "plain"])
def test_what_was_tried_out_trains_and_half_as_much_again_does_not(
    gpu: torch.device, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    config = AUTO.with_changes(training={"kernels": kernels})
    monkeypatch.setattr(fitting, "free_memory", lambda _: FREE)
    found = fitted(config, Processes(), Prepared.open(data))
    rows = found.rows_a_step
    assert torch.cuda.memory_reserved(gpu) < 1 << 27, "trials leave no more behind than what libraries keep"
    with memory_limited(gpu, FREE):
        train_prepared(data, tmp_path / "run", found)
        larger = config.with_changes(training={"tokens_per_batch": 3 * rows // 2 * 64})
        assert not within(larger, data)
    assert RunDirectory(tmp_path / "run").config().rows_a_step == rows


def within(config: Config, data: Path) -> bool:
    try:
        prepared = Prepared.open(data)
        fitting._rehearse(config, prepared, batches_of(config, prepared, "train"))
    except RuntimeError as error:
        assert fitting._out_of_memory(error), error
        return False
    return True
