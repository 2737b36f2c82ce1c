"""The whole model and its search, against transformers' MarianMTModel with the same weights."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from qkv.convert.marian import from_marian
from qkv.data.batch import one_sentence_a_row
from qkv.engines.plain import PlainEngine
from qkv.errors import ConfigError
from qkv.layers.loss import IGNORED
from qkv.models.build import assemble
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Hypothesis, Limits
from tests.packed import Pair, pair_batch, places

# Heavy: whoever runs other tests shall not import it.
if TYPE_CHECKING:
    from transformers import MarianMTModel

VOCABULARY, END, PADDING = 61, 0, 60
LONGEST, BEAMS = 9, 4
SETTINGS: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "activation_function": "relu",
    "dropout": 0.0,
    "scale_embedding": True,
    "max_position_embeddings": 32,
    "eos_token_id": END,
    "forced_eos_token_id": None,
    "pad_token_id": PADDING,
    "decoder_start_token_id": PADDING,
}


@cache
def theirs() -> MarianMTModel:
    """Random in every weight, then taught for a moment to reverse, so that it has something to say and ends it."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    model = MarianMTModel(MarianConfig(**SETTINGS))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, mean=float("layer_norm.weight" in name), std=0.2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(120):
        sources = sentences(32, seed=1000 + step)
        source_ids, source_mask = padded(sources)
        target_ids, target_mask = padded([[*source[-2::-1], END] for source in sources])
        labels = target_ids.masked_fill(target_mask == 0, IGNORED)
        optimizer.zero_grad()
        torch.autograd.backward(model(input_ids=source_ids, attention_mask=source_mask, labels=labels).loss)
        optimizer.step()
    return model.eval()


@cache
def ours() -> EncoderDecoder:
    config, weights = from_marian(theirs().config.to_dict(), theirs().state_dict())
    model = assemble(config, VOCABULARY).eval()
    model.load_state_dict(weights)
    return model


def sentences(count: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 12, (count,), generator=generator).tolist()
    return [[*torch.randint(1, PADDING, (length,), generator=generator).tolist(), END] for length in lengths]


def padded(ids: list[list[int]]) -> tuple[Tensor, Tensor]:
    """As transformers wants them: ids and a mask of those that are real."""
    packed = one_sentence_a_row(ids, PADDING)
    assert packed.segments_RW is not None
    return packed.ids_RW, packed.segments_RW


def generated(sources: list[list[int]], **options: Any) -> Any:
    ids, mask = padded(sources)
    return theirs().generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=LONGEST,
        suppress_tokens=[PADDING],
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )


def written(sequence: list[int]) -> tuple[list[int], bool]:
    """The ids between begin and end, and whether there was an end."""
    ids = sequence[1 : LONGEST + 1]
    return (ids[: ids.index(END)], True) if END in ids else (ids, False)


def searched(sources: list[list[int]], **options: Any) -> list[list[Hypothesis]]:
    limits = Limits(begin=PADDING, end=END, longest=[LONGEST] * len(sources), forbidden=(PADDING,))
    engine = PlainEngine(ours(), PADDING)
    return beam_search(engine, engine.start(sources), limits, **options)


def vary(translations: list[tuple[list[int], bool]]) -> None:
    """Some came to their end and some were cut off, and they say different things."""
    ended = [ids for ids, complete in translations if complete]
    assert len(translations) // 2 < len(ended) < len(translations)
    assert len({tuple(ids) for ids, _ in translations}) > len(translations) * 3 // 4


def test_logits_agree_however_sentences_are_laid_out() -> None:
    """Theirs pads one sentence a row; ours lays several end to end."""
    sources, targets = sentences(6, seed=1), sentences(6, seed=2)
    pairs = [Pair(source[:-1], target[:-1]) for source, target in zip(sources, targets, strict=True)]
    rows = [pairs[:2], pairs[2:3], pairs[3:]]
    batch = pair_batch(rows, source_width=37, target_width=35, padding=PADDING, begin=PADDING, end=END)
    source_ids, source_mask = padded(sources)
    target_ids, target_mask = padded([[PADDING, *pair.target] for pair in pairs])
    marian, model = theirs(), ours()
    with torch.no_grad():
        expected = marian(
            input_ids=source_ids,
            attention_mask=source_mask,
            decoder_input_ids=target_ids,
            decoder_attention_mask=target_mask,
        ).logits
        logits = model(batch.source, batch.target)
    for number, (row, columns) in enumerate(places(rows)):
        length = columns.stop - columns.start
        torch.testing.assert_close(logits[row, columns], expected[number, :length], rtol=0, atol=1e-4)
    assert expected.std() > 1


def test_greedy_translations_are_equal() -> None:
    sources = sentences(40, seed=3)
    expected = [written(ids) for ids in generated(sources, num_beams=1).sequences.tolist()]
    found = [(best[0].ids, best[0].complete) for best in searched(sources, width=1, penalty=lambda _: 1.0)]
    assert found == expected
    vary(expected)
    assert len({len(ids) for ids, _ in expected}) > 5


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 2.0, -0.5])
def test_beams_and_their_scores_are_equal(exponent: float) -> None:
    sources = sentences(40, seed=4)
    theirs_found = generated(
        sources,
        num_beams=BEAMS,
        num_return_sequences=BEAMS,
        early_stopping="never",
        length_penalty=exponent,
    )
    expected = [written(ids) for ids in theirs_found.sequences.tolist()]
    found = [
        one
        for best in searched(sources, width=BEAMS, keep=BEAMS, penalty=lambda length: length**exponent)
        for one in best
    ]
    assert [(one.ids, one.complete) for one in found] == expected
    scores = torch.tensor([one.score for one in found])
    torch.testing.assert_close(scores, theirs_found.sequences_scores, rtol=0, atol=1e-4)
    vary(expected)


def test_the_best_is_the_same_whether_or_not_the_others_are_kept() -> None:
    sources = sentences(40, seed=5)
    one = searched(sources, width=BEAMS, penalty=lambda length: length**0.6)
    four = searched(sources, width=BEAMS, keep=BEAMS, penalty=lambda length: length**0.6)
    assert one == [best[:1] for best in four]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"activation_function": "swish"}, "activation_function 'swish'; only 'relu'"),
        ({"scale_embedding": False}, "scale_embedding False; only True"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings False; only True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings False; only True"),
        ({"normalize_before": True}, "normalize_before True; only False"),
        ({"decoder_ffn_dim": 48}, "encoder_ffn_dim 40 and decoder_ffn_dim 48; only one for both"),
        ({"decoder_attention_heads": 8}, "encoder_attention_heads 4 and decoder_attention_heads 8"),
    ],
)
def test_what_we_cannot_say_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        from_marian({**theirs().config.to_dict(), **changes}, theirs().state_dict())


def test_what_a_config_leaves_unsaid_is_what_transformers_takes() -> None:
    from transformers import MarianConfig

    settings = theirs().config.to_dict()
    del settings["scale_embedding"]
    with pytest.raises(ConfigError, match="scale_embedding False; only True"):
        from_marian(settings, theirs().state_dict())
    assert MarianConfig().scale_embedding is False


def test_a_bias_on_the_logits_is_refused() -> None:
    weights = theirs().state_dict()
    bias = torch.zeros_like(weights["final_logits_bias"])
    bias[0, 3] = 0.1
    with pytest.raises(ConfigError, match="final_logits_bias"):
        from_marian(theirs().config.to_dict(), {**weights, "final_logits_bias": bias})
