"""The weights of a model as arrays, by name: of an exported model and of a checkpoint."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qkv.engines.weights import read_checkpoint, read_exported
from qkv.errors import CheckpointError
from qkv.export import protobuf
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


def a_graph(*nodes: tuple[str, list[str]], **constants: NDArray[Any]) -> bytes:
    written = [protobuf.node(kind, "", inputs, ["y"], {}) for kind, inputs in nodes]
    tensors = [protobuf.tensor(name, array) for name, array in constants.items()]
    return protobuf.model("graph", written, tensors, [], [], {"": 24})


SCALED = ("MatMulIntegerToFloat", ["x", "weight", "step", "scale"])


@pytest.mark.parametrize(
    "graph",
    [
        b"\xff" * 100,
        a_graph(("MatMul", ["x"])),
        a_graph(("MatMul", ["x", "weight"]), weight=np.ones((), np.float32)),
        a_graph(("LayerNormalization", ["x", "nowhere"])),
        # Of a million and a million numbers, four terabytes would come.
        a_graph(SCALED, weight=np.ones((1, 1), np.int8), scale=np.ones((1_000_000, 1), np.float32)),
        a_graph(SCALED, weight=np.ones((1, 1_000_000), np.int8), scale=np.ones((1_000_000, 1), np.float32)),
        protobuf.model("graph", [], [b"\x08" + b"\xff" * 9 + b"\x01\x10\x01\x4a\x00"], [], [], {"": 24}),
    ],
    ids=["no end", "no weights", "no matrix", "no norm", "a column of scales", "more scales", "no such size"],
)
def test_a_graph_of_somebody_who_means_harm_is_damaged(graph: bytes, tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8")
    (tmp_path / "encoder.onnx").write_bytes(graph)
    with pytest.raises(CheckpointError, match="export"):
        read_exported(tmp_path, FAMILIES["paper"])


def test_vectors_without_a_scale_for_each_are_damaged(tmp_path: Path) -> None:
    exported(tmp_path, model("paper"), "int8")
    np.save(tmp_path / "vectors.npy", np.ones((1, 1_000_000), np.int8))
    np.save(tmp_path / "scale.npy", np.ones(1_000_000, np.float32))
    with pytest.raises(CheckpointError, match="a scale for each"):
        read_exported(tmp_path, FAMILIES["paper"])
