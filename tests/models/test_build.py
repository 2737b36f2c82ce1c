"""What is built is what the settings say: torch's stacks of layers, with weights of the right size to begin with."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from qkv.config import ModelConfig
from qkv.data.batch import Packed
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block
from qkv.layers.positions import LearnedPositions
from qkv.layers.residual import PreNorm
from qkv.models.build import build
from qkv.models.encoder_decoder import EncoderDecoder
from tests.layers.test_block import copy_weights

VOCABULARY, WIDTH, HEADS, HIDDEN = 23, 12, 3, 20
SOURCE, TARGET = torch.tensor([[5, 9, 7, 11, 2]]), torch.tensor([[1, 8, 4]])


def torchs_logits(model: EncoderDecoder, *, norm_first: bool) -> Tensor:
    """What torch's own layers make of the same weights; a stack of pre-norm layers needs a norm after the last."""
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, **options),  # type: ignore[arg-type]
        len(model.encoder.blocks),
        norm=nn.LayerNorm(WIDTH) if norm_first else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, **options),  # type: ignore[arg-type]
        len(model.decoder.blocks),
        norm=nn.LayerNorm(WIDTH) if norm_first else None,
    )
    for theirs, ours in ((encoder, model.encoder), (decoder, model.decoder)):
        for layer, block in zip(theirs.layers, ours.blocks, strict=True):
            assert isinstance(block, Block)
            copy_weights(layer, block)
        if norm_first:
            assert isinstance(theirs.norm, nn.LayerNorm)
            assert isinstance(ours.last, PreNorm)
            ours.last.norm.load_state_dict(theirs.norm.state_dict())
    hidden = torch.ones(TARGET.size(1), TARGET.size(1), dtype=torch.bool).triu(1)
    read = [model.inputs(ids, torch.arange(ids.size(1)).unsqueeze(0)) for ids in (SOURCE, TARGET)]
    written: Tensor = decoder(read[1], encoder(read[0]), tgt_mask=hidden)
    return written @ model.inputs.weight_VD.T


@pytest.mark.parametrize(("residual", "norm_first"), [("post", False), ("pre", True)])
def test_a_model_is_torchs_stacks_of_layers(residual: str, norm_first: bool) -> None:
    config = ModelConfig(
        width=WIDTH, heads=HEADS, hidden=HIDDEN, encoder_layers=2, decoder_layers=3, dropout=0.0, projection="biased",
        residual=residual,  # type: ignore[arg-type]
    )  # fmt: skip
    model = build(config, VOCABULARY, seed=1)
    expected = torchs_logits(model, norm_first=norm_first)
    source, target = (Packed(ids, torch.arange(ids.size(1)).unsqueeze(0), None) for ids in (SOURCE, TARGET))
    torch.testing.assert_close(model(source, target), expected, rtol=1e-4, atol=1e-4)


BEGUN = build(
    ModelConfig(width=96, heads=4, hidden=160, encoder_layers=1, decoder_layers=1, positions="learned", longest=500),
    2000,
    seed=3,
)


def test_embeddings_have_variance_one_once_scaled_and_learned_positions_are_as_small_as_embeddings_before() -> None:
    assert (BEGUN.inputs.weight_VD * math.sqrt(96)).std().item() == pytest.approx(1.0, rel=0.02)
    assert isinstance(BEGUN.inputs.positions, LearnedPositions)
    assert BEGUN.inputs.positions.weight_KD.std().item() == pytest.approx(96**-0.5, rel=0.02)


def test_matrices_begin_as_glorot_and_bengio_say_and_biases_at_zero() -> None:
    """Evenly within ±√(6 / (ins + outs)), so that neither what goes in nor what comes back grows or fades."""
    linears = [part for part in BEGUN.modules() if isinstance(part, nn.Linear)]
    assert len(linears) == 3 * 4 + 2 * 2
    for linear in linears:
        bound = math.sqrt(6 / sum(linear.weight.shape))
        assert linear.weight.abs().max().item() == pytest.approx(bound, rel=0.01)
        assert linear.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
        assert linear.bias is None or not linear.bias.any()
    for one, other in pairwise(part for part in BEGUN.modules() if isinstance(part, MultiHeadAttention)):
        assert not torch.equal(one.query.weight, other.query.weight)


def test_norms_begin_by_changing_nothing() -> None:
    norms = [part for part in BEGUN.modules() if isinstance(part, nn.LayerNorm)]
    assert len(norms) == 5
    for norm in norms:
        assert torch.equal(norm.weight, torch.ones(96)) and not norm.bias.any()


@pytest.mark.parametrize("feed_forward", ["relu", "gated"])
def test_sub_layers_that_begin_silent_say_nothing_and_are_otherwise_the_same(feed_forward: str) -> None:
    config = ModelConfig(width=WIDTH, heads=HEADS, hidden=HIDDEN, encoder_layers=2, decoder_layers=1, residual="pre")
    config = dataclasses.replace(config, feed_forward=feed_forward, dropout=0.0)  # type: ignore[arg-type]
    usual = build(config, VOCABULARY, seed=1)
    silent = build(dataclasses.replace(config, initial="silent"), VOCABULARY, seed=1)
    for (name, one), other in zip(silent.named_parameters(), usual.parameters(), strict=True):
        last = name.endswith(("attention.output.weight", "narrow.weight"))
        assert torch.equal(one, torch.zeros_like(one) if last else other), name
    source, target = (Packed(ids, torch.arange(ids.size(1)).unsqueeze(0), None) for ids in (SOURCE, TARGET))
    x, _ = silent.read(target, silent.start(source))
    assert isinstance(silent.decoder.last, PreNorm)
    torch.testing.assert_close(x, silent.decoder.last.norm(silent.inputs(target.ids_RW, target.positions_RW)))
