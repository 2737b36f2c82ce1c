"""What every family of models promises, whatever is inside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from qkv.config import Config, DataConfig, ModelConfig
from qkv.data.batch import Packed, PairBatch, one_sentence_a_row
from qkv.engines.plain import PlainEngine
from qkv.layers.attention import recording
from qkv.layers.loss import smoothed_cross_entropy
from qkv.layers.visibility import not_later, same_segment
from qkv.models.build import assemble, build
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.recipes import RECIPES, recipe
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Limits
from qkv.search.sample import Sampling, sample
from qkv.settings import from_json, to_json
from tests.models.families import (
    BEGIN,
    END,
    FAMILIES,
    FIRST_WORD,
    PADDING,
    SOURCE_WIDTH,
    TARGET_WIDTH,
    VOCABULARY,
    alone,
    batch_of,
    next_token,
    small_model,
    some_rows,
)
from tests.packed import Pair, places

every_family = pytest.mark.parametrize("family", FAMILIES)

close = partial(torch.testing.assert_close, rtol=0, atol=2e-5)


def logits_of(model: EncoderDecoder, batch: PairBatch) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(batch.source, batch.target)
    return logits


def loss_of(model: EncoderDecoder, batch: PairBatch) -> Tensor:
    """The mean over the tokens, as training computes it."""
    x_RWD, _ = model.read(batch.target, model.start(batch.source))
    loss = smoothed_cross_entropy(x_RWD.flatten(0, 1), model.inputs.weight_VD, batch.label_RW.flatten(), smoothing=0.0)
    return loss.total / loss.tokens


def sources_and_targets() -> tuple[Packed, Tensor]:
    """Three sources of different lengths, and a target of five tokens for each."""
    sources = [pair.source for row in some_rows() for pair in row][:3]
    assert len({*map(len, sources)}) == 3
    target = torch.randint(FIRST_WORD, VOCABULARY, (3, 5), generator=torch.Generator().manual_seed(5))
    return one_sentence_a_row(sources, PADDING), target


def all_at_once(ids_RW: Tensor) -> Packed:
    return Packed(ids_RW, torch.arange(ids_RW.size(1)).expand_as(ids_RW), None)


# What a model begins with is forgotten once it has learned.
CHOICES = {
    name: kind
    for name, kind in get_type_hints(ModelConfig).items()
    if get_origin(kind) is Literal and name != "initial"
}


def choices(config: ModelConfig) -> dict[str, str]:
    """Which row of each table a model takes."""
    return {name: getattr(config, name) for name in CHOICES}


def test_every_choice_has_a_family() -> None:
    for name, kind in CHOICES.items():
        assert {getattr(config, name) for config in FAMILIES.values()} == {*get_args(kind)}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_of_a_family(name: str) -> None:
    assert choices(recipe(name).model) in [choices(config) for config in FAMILIES.values()]


@every_family
@pytest.mark.usefixtures("checked_shapes")
def test_shapes_tell_the_truth(family: str) -> None:
    model, batch = small_model(family), batch_of(some_rows())
    torch.autograd.backward(loss_of(model, batch))
    source, target = sources_and_targets()
    with torch.inference_mode(), recording(model):
        logits_of(model, batch)
        model(source, all_at_once(target))
        limits = Limits(begin=BEGIN, end=END, longest=[2, 4, 3], forbidden=(PADDING, BEGIN))
        engine = PlainEngine(model, PADDING)
        sources = [[5, 6, END], [7, END], [6, 5, 8, END]]
        beam_search(engine, engine.start(sources, looks=True), limits, width=4, penalty=float)
        sample(engine, engine.start(sources), limits, Sampling(), seeds=[(1,), (2,), (3,)])


@every_family
def test_no_parameter_is_without_gradient(family: str) -> None:
    model = small_model(family)
    torch.autograd.backward(loss_of(model, batch_of(some_rows())))
    without = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # A key's bias adds the same to every score of a query, which a softmax does not see: only rounding moves it.
    assert [name for name in without if not name.endswith("attention.key.bias")] == []


@every_family
def test_the_configuration_survives_json(family: str) -> None:
    config = Config(model=FAMILIES[family], data=DataConfig(row_width=32))
    assert from_json(to_json(config)) == config


@every_family
def test_the_future_is_hidden(family: str) -> None:
    model, rows = small_model(family), some_rows()
    batch = batch_of(rows)
    before = logits_of(model, batch)
    for row, columns in places(rows):
        for column in range(columns.start + 1, columns.stop):
            ids = batch.target.ids_RW.clone()
            ids[row, column] = FIRST_WORD + (ids[row, column] - FIRST_WORD + 1) % (VOCABULARY - FIRST_WORD)
            after = logits_of(model, batch._replace(target=batch.target._replace(ids_RW=ids)))
            assert torch.equal(after[row, columns.start : column], before[row, columns.start : column])
            assert (after[row, column : columns.stop] - before[row, column : columns.stop]).abs().amax(1).min() > 1e-5


@every_family
def test_sentences_of_a_row_know_nothing_of_each_other(family: str) -> None:
    model, rows = small_model(family), some_rows()
    before = logits_of(model, batch_of(rows))
    rows[1][1] = Pair([FIRST_WORD] * 4, [FIRST_WORD + 1] * 3)
    after = logits_of(model, batch_of(rows))
    first, changed, last = (where.columns for where in places(rows) if where.row == 1)
    for same in (first, last):
        assert torch.equal(after[1, same], before[1, same])
    assert (after[1, changed] - before[1, changed]).abs().amax(1).min() > 1e-2


@every_family
def test_packing_changes_nothing(family: str) -> None:
    model, rows = small_model(family), some_rows()
    together = logits_of(model, batch_of(rows))
    pairs = [pair for row in rows for pair in row]
    for pair, (row, columns) in zip(pairs, places(rows), strict=True):
        close(together[row, columns], logits_of(model, alone(pair))[0])


@every_family
def test_the_width_of_rows_changes_nothing(family: str) -> None:
    model, rows = small_model(family), some_rows()
    narrow = logits_of(model, batch_of(rows))
    wide = logits_of(model, batch_of(rows, source_width=SOURCE_WIDTH + 4, target_width=TARGET_WIDTH + 5))
    for row, columns in places(rows):
        close(wide[row, columns], narrow[row, columns])


@every_family
def test_the_order_of_rows_changes_nothing(family: str) -> None:
    model, rows = small_model(family), some_rows()
    order = [2, 0, 3, 1]
    shuffled = logits_of(model, batch_of([rows[r] for r in order]))
    close(shuffled, logits_of(model, batch_of(rows))[order])


@pytest.mark.parametrize("family", [name for name, config in FAMILIES.items() if config.positions == "rotary"])
def test_rotary_positions_are_distances_within_a_side(family: str) -> None:
    """Where a sentence begins is nothing to it, nor to the sentence on the other side."""
    model, batch = small_model(family), batch_of(some_rows())
    before = logits_of(model, batch)
    source, target = (side._replace(positions_RW=side.positions_RW + 7) for side in (batch.source, batch.target))
    close(logits_of(model, batch._replace(source=source)), before)
    close(logits_of(model, batch._replace(target=target)), before)


@every_family
def test_one_step_at_a_time_equals_all_at_once(family: str) -> None:
    model = small_model(family)
    source, target = sources_and_targets()
    with torch.no_grad():
        expected = model(source, all_at_once(target))
        state = model.start(source)
        for column in range(target.size(1)):
            logits, state = next_token(model, target[:, column], state)
            close(logits, expected[:, column])


@every_family
def test_several_steps_at_a_time_equal_all_at_once(family: str) -> None:
    """With the segments of packed rows, and without."""
    model, batch = small_model(family), batch_of(some_rows())
    source, target = sources_and_targets()
    for one_source, one_target in [(batch.source, batch.target), (source, all_at_once(target))]:
        with torch.no_grad():
            expected = model(one_source, one_target)
            state = model.start(one_source)
            for columns in (slice(0, 2), slice(2, 3), slice(3, None)):
                part = Packed(*(None if one is None else one[:, columns] for one in one_target))  # type: ignore[arg-type]
                logits, state = model.step(part, state)
                close(logits, expected[:, columns])


@every_family
def test_a_shorter_source_is_read_as_if_it_stood_alone(family: str) -> None:
    """Sources padded to the longest, as in search: its padding reaches nobody."""
    model = small_model(family)
    source, target = sources_and_targets()
    assert source.segments_RW is not None
    with torch.no_grad():
        together = model(source, all_at_once(target))
        for row, length in enumerate(source.segments_RW.sum(1).tolist()):
            close(
                together[row],
                model(all_at_once(source.ids_RW[row : row + 1, :length]), all_at_once(target[row : row + 1]))[0],
            )


@every_family
def test_rows_that_change_places_between_steps_take_their_past_along(family: str) -> None:
    """Packed rows, whose segments are a part of what was read."""
    model, batch = small_model(family), batch_of(some_rows())
    order = torch.tensor([2, 0, 3, 1])
    first, later = (
        Packed(*(part[:, columns] for part in batch.target if part is not None))
        for columns in (slice(0, 4), slice(4, None))
    )
    with torch.no_grad():
        expected = model(batch.source, batch.target)
        _, state = model.step(first, model.start(batch.source))
        moved = Packed(*(part[order] for part in later if part is not None))
        logits, _ = model.step(moved, state.select(order, order))
    close(logits, expected[order, 4:])


@every_family
def test_hypotheses_that_share_a_memory_go_on_as_if_each_had_its_own(family: str) -> None:
    """Two sentences of three are left, the last first; each has gone on to four hypotheses, some of the same past."""
    model = small_model(family)
    source, begun = sources_and_targets()
    sentences, beams = [2, 0], 4
    pasts = [2, 2, 2, 2, 0, 0, 0, 0]
    endings = torch.randint(FIRST_WORD, VOCABULARY, (8, 3), generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        _, state = model.step(all_at_once(begun), model.start(source))
        state = state.select(torch.tensor(pasts), torch.tensor(sentences))
        assert len(state.source_segments) * beams == len(pasts)
        first, state = next_token(model, endings[:, 0], state)
        # The hypotheses of a sentence change places and one is taken twice; the memory stays as it is.
        chosen = [3, 0, 0, 1, 5, 4, 7, 7]
        state = state.select(torch.tensor(chosen), None)
        second, _ = next_token(model, endings[:, 1], state)

        repeated = Packed(*(part[pasts] for part in source if part is not None))
        close(first, model(repeated, all_at_once(torch.cat([begun[pasts], endings[:, :1]], 1)))[:, -1])
        written = torch.cat([begun[pasts], endings[:, :1]], 1)[chosen]
        close(second, model(repeated, all_at_once(torch.cat([written, endings[:, 1:2]], 1)))[:, -1])


@every_family
def test_recording_changes_nothing_and_weights_are_shares_of_what_is_visible(family: str) -> None:
    model, batch = small_model(family), batch_of(some_rows())
    before = logits_of(model, batch)
    with recording(model) as recordings:
        close(logits_of(model, batch), before)
    assert torch.equal(logits_of(model, batch), before)

    source, target = batch.source.segments_RW, batch.target.segments_RW
    assert source is not None and target is not None
    visible = {
        "encoder.self_attention": same_segment(source, source),
        "decoder.self_attention": same_segment(target, target) & not_later(TARGET_WIDTH, TARGET_WIDTH, target.device),
        "decoder.cross_attention": same_segment(target, source),
    }
    config = FAMILIES[family]
    assert len(recordings) == config.encoder_layers + 2 * config.decoder_layers
    for name, recorded in recordings.items():
        stack, _, _, kind = name.split(".")
        weight, seen = recorded.weight_RHWK, visible[f"{stack}.{kind}"]
        assert weight is not None and weight.size(1) == config.heads
        torch.testing.assert_close(weight.sum(-1), torch.ones(weight.shape[:-1]))
        assert torch.equal(weight > 0, seen.expand_as(weight))


@every_family
def test_saving_and_loading_changes_nothing(family: str, tmp_path: Path) -> None:
    model, batch = small_model(family), batch_of(some_rows())
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    loaded = assemble(FAMILIES[family], VOCABULARY).eval()
    loaded.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert torch.equal(logits_of(loaded, batch), logits_of(model, batch))


@every_family
def test_the_same_seed_gives_the_same_weights(family: str) -> None:
    torch.manual_seed(1)
    first = build(FAMILIES[family], VOCABULARY, seed=4).state_dict()
    torch.manual_seed(2)
    second, third = (build(FAMILIES[family], VOCABULARY, seed=seed).state_dict() for seed in (4, 5))
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
    assert not torch.equal(first["inputs.weight_VD"], third["inputs.weight_VD"])


@every_family
def test_rows_that_are_full_empty_or_half_empty_give_numbers(family: str) -> None:
    model = small_model(family)
    full = Pair([FIRST_WORD] * (SOURCE_WIDTH - 1), [FIRST_WORD] * (TARGET_WIDTH - 1))
    rows = [[full], [], [full._replace(target=[])], [full._replace(source=[])], [Pair([], [])]]
    batch = batch_of(rows)
    assert logits_of(model, batch).isfinite().all()
    torch.autograd.backward(loss_of(model, batch))
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@every_family
def test_padding_teaches_nothing(family: str) -> None:
    """What stands in positions that are nobody's reaches neither the loss nor any gradient."""
    gradients = []
    for junk in (PADDING, VOCABULARY - 1):
        model, batch = small_model(family), batch_of(some_rows())
        for side in (batch.source, batch.target):
            assert side.segments_RW is not None
            side.ids_RW[side.segments_RW == 0] = junk
        torch.autograd.backward(loss_of(model, batch))
        gradients.append([weight.grad for weight in model.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


REVERSED, STEPS = 8, 200


def to_reverse(sentences: int, seed: int) -> list[Pair]:
    """Five of eight words, and the same backwards."""
    words = torch.randint(
        FIRST_WORD, FIRST_WORD + REVERSED, (sentences, 5), generator=torch.Generator().manual_seed(seed)
    )
    return [Pair(source, source[::-1]) for source in words.tolist()]


def two_a_row(pairs: list[Pair]) -> PairBatch:
    return batch_of([[*two] for two in zip(pairs[::2], pairs[1::2], strict=True)], source_width=12, target_width=12)


def share_reversed(model: EncoderDecoder, pairs: list[Pair]) -> float:
    """The share of words that greedy search gets right."""
    engine = PlainEngine(model, PADDING)
    limits = Limits(begin=BEGIN, end=END, longest=[6] * len(pairs))
    sources = [[*pair.source, END] for pair in pairs]
    found = beam_search(engine, engine.start(sources), limits, width=1, penalty=float)
    right = [a == b for pair, best in zip(pairs, found, strict=True) for a, b in zip(pair.target, best[0].ids)]  # noqa: B905
    return sum(right) / (5 * len(pairs))


@every_family
def test_it_learns_to_reverse(family: str) -> None:
    """A model that looked at the future, or not at the source, could not: it writes word by word, unseen sentences."""
    model = build(FAMILIES[family], FIRST_WORD + REVERSED, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    unseen = to_reverse(50, seed=0)
    assert share_reversed(model, unseen) < 0.4
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = 5e-3 * min(step / 30, 1, (STEPS + 1 - step) / 60)
        optimizer.zero_grad()
        torch.autograd.backward(loss_of(model, two_a_row(to_reverse(40, seed=step))))
        optimizer.step()
    assert share_reversed(model, unseen) > 0.9
