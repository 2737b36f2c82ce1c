"""The forward pass in plain arrays, against the model itself and against the engine that translates."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from qkv.data.batch import one_sentence_a_row
from qkv.engines.onnx import OnnxEngine
from qkv.engines.weights import Weights, read_exported
from qkv.inspecting.transformer import Inside, Looked, Transformer
from qkv.layers.attention import recording
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.engine import Floats
from tests.engines.exporting import exported
from tests.models.families import BEGIN, END, FAMILIES, PADDING, small_model

SOURCE = [9, 5, 6, 30, 8, 11, END]
READ = [BEGIN, 7, 20, 8, 33, 4]


@cache
def model(family: str) -> EncoderDecoder:
    return small_model(family)


def opened(folder: Path, family: str, precision: str) -> tuple[Inside, OnnxEngine]:
    engine = exported(folder, model(family), precision)
    weights = read_exported(folder, FAMILIES[family])
    return Transformer(FAMILIES[family], weights).look_inside(SOURCE, READ), engine


def by_name(inside: Inside) -> dict[str, Looked]:
    return {
        f"{stack}.blocks.{layer}.{part}": looked
        for stack, part, looks in (
            ("encoder", "self_attention", inside.encoder),
            ("decoder", "self_attention", inside.decoder),
            ("decoder", "cross_attention", inside.cross),
        )
        for layer, looked in enumerate(looks)
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_looks_where_the_models_own_looks(family: str, tmp_path: Path) -> None:
    inside, _ = opened(tmp_path, family, "float32")
    with torch.inference_mode(), recording(model(family)) as recordings:
        logits_RWV = model(family)(one_sentence_a_row([SOURCE], PADDING), one_sentence_a_row([READ], PADDING))
    looks = by_name(inside)
    assert looks.keys() == recordings.keys()
    for name, looked in looks.items():
        weight_RHWK = recordings[name].weight_RHWK
        assert weight_RHWK is not None
        np.testing.assert_allclose(looked.weight_HWK, weight_RHWK[0].numpy(), atol=1e-4)
    np.testing.assert_allclose(inside.log_probability_WV, logits_RWV[0].log_softmax(-1).numpy(), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_next_tokens_are_as_likely_as_the_engine_holds_them_to_be(
    family: str, precision: str, tmp_path: Path
) -> None:
    inside, engine = opened(tmp_path, family, precision)
    np.testing.assert_allclose(np.exp(inside.log_probability_WV), np.exp(_told(engine)), atol=1e-5)


def _told(engine: OnnxEngine) -> Floats:
    """Log-probabilities of what follows each token that is read."""
    state, told = engine.start([SOURCE]), []
    for token in READ:
        continuations, state = engine.step(np.array([token]), state)
        told.append(continuations.everything()[0])
    return np.stack(told)


@pytest.mark.parametrize("family", ["paper", "modern"])
def test_a_weight_is_the_softmax_of_the_scaled_product_of_query_and_key(family: str, tmp_path: Path) -> None:
    inside, _ = opened(tmp_path, family, "float32")
    for name, (query_HWE, key_HKE, value_HKU, weight_HWK) in by_name(inside).items():
        score_HWK = np.einsum("hwe,hke->hwk", query_HWE, key_HKE) / np.sqrt(query_HWE.shape[2])
        if name.startswith("decoder") and name.endswith("self_attention"):
            score_HWK[:, np.triu(np.ones(score_HWK.shape[1:], bool), 1)] = -np.inf
        power_HWK = np.exp(score_HWK)
        np.testing.assert_allclose(weight_HWK, power_HWK / power_HWK.sum(-1, keepdims=True), atol=1e-6)
        assert value_HKU.shape[:2] == key_HKE.shape[:2]


def test_names_of_arrays_tell_the_truth(tmp_path: Path, checked_shapes: None) -> None:  # noqa: ARG001
    arrays = {name: tensor.numpy() for name, tensor in model("modern").state_dict().items()}
    assert Transformer(FAMILIES["modern"], Weights(arrays, "float32")).look_inside(SOURCE, READ)
    exported(tmp_path, model("paper"), "int8")
    assert read_exported(tmp_path, FAMILIES["paper"])
