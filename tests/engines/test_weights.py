"""The weights of a model as arrays, by name: of an exported model and of a checkpoint."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qkv.engines.weights import read_checkpoint, read_exported
from qkv.errors import CheckpointError
from qkv.models.encoder_decoder import EncoderDecoder
from tests.engines.exporting import exported
from tests.models.families import FAMILIES, small_model


@cache
def model(family: str) -> EncoderDecoder:
    return small_model(family)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_model_has_every_weight_of_its_run(family: str, tmp_path: Path) -> None:
    exported(tmp_path, model(family), "float32")
    weights = read_exported(tmp_path, FAMILIES[family])
    own = model(family).state_dict()
    assert weights.precision == "float32"
    assert weights.arrays.keys() == own.keys()
    assert all(np.array_equal(array, own[name].numpy()) for name, array in weights.arrays.items())


def test_the_weights_of_a_checkpoint_are_read_without_torch(toy_run: Path) -> None:
    from tests.toy import weights

    read = read_checkpoint(toy_run / "final")
    own = weights(toy_run)
    assert read.arrays.keys() == own.keys()
    assert all(np.array_equal(array, own[name].numpy()) for name, array in read.arrays.items())


def test_graphs_of_another_model_are_refused(tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8")
    for family in ("modern", "gated", "own key and value widths", "query-key-norm"):
        with pytest.raises(CheckpointError, match="export the run again"):
            read_exported(tmp_path, FAMILIES[family])


@pytest.mark.parametrize("keep", [7, 1000, -1])
def test_a_graph_that_is_cut_off_is_damaged(keep: int, tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8")
    graph = tmp_path / "step.onnx"
    graph.write_bytes(graph.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="export"):
        read_exported(tmp_path, FAMILIES["paper"])
