"""The search that a GPU does by itself, step by step on the CPU, against the plain search."""

from __future__ import annotations

import copy
import dataclasses
import gc
import importlib.util
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from qkv.engines.gpu import search
from qkv.engines.gpu.decoder import Decoder
from qkv.engines.gpu.search import GpuSearch
from qkv.engines.plain import PlainEngine
from qkv.errors import NotFiniteError
from qkv.models.encoder_decoder import EncoderDecoder
from qkv.search.beam import beam_search
from qkv.search.hypothesis import Hypothesis, Limits, Penalty, paper_penalty
from tests.models.families import (
    BEGIN,
    END,
    FAMILIES,
    FIRST_WORD,
    PADDING,
    VOCABULARY,
    batch_of,
    randomised,
    small_model,
    some_rows,
)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """With places for fewer than there are sentences, so that some wait, and all sizes are seen."""
    monkeypatch.setattr(search, "PLACES", (1, 3, 7))
    monkeypatch.setattr(search, "_SMALLEST", 16)


def some_sources(count: int, *, seed: int = 5, most: int = 12) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, most, (count,), generator=generator).tolist()
    return [
        [*torch.randint(FIRST_WORD, VOCABULARY, (length,), generator=generator).tolist(), END] for length in lengths
    ]


def some_limits(sources: list[list[int]], *, extra: int = 4, forbidden: tuple[int, ...] = (PADDING, BEGIN)) -> Limits:
    return Limits(BEGIN, END, [len(source) + extra for source in sources], forbidden)


def plainly(
    model: EncoderDecoder, sources: list[list[int]], limits: Limits, width: int, penalty: Penalty, keep: int
) -> list[list[Hypothesis]]:
    engine = PlainEngine(model, PADDING)
    return beam_search(engine, engine.start(sources), limits, width=width, penalty=penalty, keep=keep)


def same(ours: list[list[Hypothesis]], plain: list[list[Hypothesis]]) -> None:
    assert [[(one.ids, one.complete) for one in some] for some in ours] == [
        [(one.ids, one.complete) for one in some] for some in plain
    ]
    for some, expected in zip(ours, plain, strict=True):
        assert [one.score for one in some] == pytest.approx([one.score for one in expected], abs=1e-4)
        for one, other in zip(some, expected, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
            assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)


def that_ends_at_times(family: str, **changes: int) -> EncoderDecoder:
    """Here and there a sentence ends: a random model mostly says its last word again, and ends always or never.

    The end's vector stands at right angles to what is usual in what the decoder says, and is long: so its logit is
    far up or far down.
    """

    model = randomised(dataclasses.replace(FAMILIES[family], **changes))  # type: ignore[arg-type]
    some = batch_of(some_rows())
    with torch.no_grad():
        said_RWD, _ = model.read(some.target, model.start(some.source))
        usual_D = said_RWD.flatten(0, 1).mean(0)
        end_D = model.inputs.weight_VD[END]
        end_D -= (end_D @ usual_D) / (usual_D @ usual_D) * usual_D
        end_D *= 8.0
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("width", "keep"), [(1, 1), (4, 1), (3, 3)])
def test_it_finds_what_the_plain_search_finds(family: str, width: int, keep: int) -> None:
    model, sources = that_ends_at_times(family), some_sources(17)
    limits, penalty = some_limits(sources), paper_penalty(0.6)
    ours = GpuSearch(model).find(sources, limits, width=width, penalty=penalty, keep=keep)
    same(ours, plainly(model, sources, limits, width, penalty, keep))


def test_with_the_kernels_of_a_gpu_it_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted where there is none."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here")
    from qkv.layers.gpu import residual

    # The interpreter takes its time for each program, however large.
    monkeypatch.setitem(residual.FORWARD, "ROWS", 16)
    monkeypatch.setattr(search, "PLACES", (1, 2))
    model, sources = that_ends_at_times("paper", decoder_layers=1), some_sources(2, most=3)
    limits, penalty = some_limits(sources, extra=0), paper_penalty(0.6)
    with np.errstate(all="ignore"):
        ours = GpuSearch(model, kernels=True).find(sources, limits, width=2, penalty=penalty, keep=2)
    same(ours, plainly(model, sources, limits, 2, penalty, 2))


@pytest.mark.parametrize("alpha", [0.0, 1.5, -0.7])
@pytest.mark.usefixtures("checked_shapes")
def test_it_does_so_with_any_penalty(alpha: float) -> None:
    """And of sentences that end and some that are cut off."""
    model, sources = that_ends_at_times("paper"), some_sources(9)
    limits, penalty = some_limits(sources), paper_penalty(alpha)
    ours = GpuSearch(model).find(sources, limits, width=4, penalty=penalty, keep=2)
    same(ours, plainly(model, sources, limits, 4, penalty, 2))
    assert {one.complete for some in ours for one in some} == {True, False}


@pytest.mark.parametrize("slots", [1, 7 * 3 * 32, 1 << 20])
def test_limits_may_be_as_short_as_a_token_and_longer_than_the_smallest_table(
    slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much memory there is: with little, tables have few places, and one size each."""
    monkeypatch.setattr(search, "_SLOTS", slots)
    model, sources = that_ends_at_times("biased"), some_sources(8)
    limits = Limits(BEGIN, END, [1, 2, 40, 15, 16, 17, 1, 33], (PADDING, BEGIN))
    ours = GpuSearch(model).find(sources, limits, width=3, penalty=paper_penalty(0.6), keep=3)
    same(ours, plainly(model, sources, limits, 3, paper_penalty(0.6), 3))


@pytest.mark.parametrize("width", [2, 40])
def test_where_little_may_be_written_little_is_found(width: int) -> None:
    """All words but one are forbidden; a beam may be wider than the vocabulary too."""
    model, sources = that_ends_at_times("gated"), some_sources(4)
    limits = Limits(BEGIN, END, [4] * 4, (PADDING, BEGIN, *range(FIRST_WORD + 1, VOCABULARY)))
    ours = GpuSearch(model).find(sources, limits, width=width, penalty=paper_penalty(0.6), keep=width)
    same(ours, plainly(model, sources, limits, width, paper_penalty(0.6), width))
    assert {one for some in ours for each in some for one in each.ids} <= {FIRST_WORD}


def test_a_sentence_alone_finds_what_it_finds_among_others() -> None:
    model, sources = that_ends_at_times("rotary"), some_sources(9)
    limits, penalty = some_limits(sources), paper_penalty(0.6)
    ours = GpuSearch(model)
    together = ours.find(sources, limits, width=3, penalty=penalty, keep=3)
    for source, longest, found in zip(sources, limits.longest, together, strict=True):
        alone = ours.find([source], Limits(BEGIN, END, [longest], limits.forbidden), width=3, penalty=penalty, keep=3)
        same(alone, [found])


def test_a_search_can_be_used_again_with_other_rules() -> None:
    """Tables are kept, and what was in them is forgotten."""
    model = that_ends_at_times("modern")
    again = GpuSearch(model)
    for seed, width, alpha, forbidden in [(1, 4, 0.6, ()), (2, 4, 0.0, (7, 8)), (3, 1, 0.6, ()), (4, 4, 2.0, ())]:
        sources = some_sources(10, seed=seed)
        limits, penalty = some_limits(sources, forbidden=forbidden), paper_penalty(alpha)
        found = again.find(sources, limits, width=width, penalty=penalty)
        same(found, plainly(model, sources, limits, width, penalty, 1))


def test_tables_of_other_searches_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_SLOTS", 7 * 2 * 16)
    again, sources = GpuSearch(small_model("paper")), some_sources(9)
    limits = some_limits(sources, extra=0)
    for width in (1, 2, 3, 4, 5):
        again.find(sources, limits, width=width, penalty=paper_penalty(0.6))
    assert sum(places * size * width for places, size, width, _ in again._stations) <= 4 * search._SLOTS


def test_a_table_that_is_let_go_of_is_gone_at_once() -> None:
    """Not when garbage is looked for next: until then its memory would be taken."""
    again, sources = GpuSearch(small_model("paper")), some_sources(3)
    again.find(sources, some_limits(sources), width=2, penalty=paper_penalty(0.6))
    tables = [weakref.ref(station.table) for station in again._stations.values()]
    assert tables
    gc.disable()
    try:
        again._stations.clear()
        assert [table() for table in tables] == [None] * len(tables)
    finally:
        gc.enable()


@pytest.mark.parametrize("after", [0, 1, 5])
def test_what_nobody_waits_for_leaves_and_the_others_find_the_same(after: int) -> None:
    model, sources = that_ends_at_times("rotary"), some_sources(17)
    limits, penalty = some_limits(sources, extra=40), paper_penalty(0.6)
    asked: dict[int, int] = {}

    def abandoned(number: int) -> bool:
        asked[number] = asked.get(number, 0) + 1
        return number % 3 == 0 and asked[number] > after

    whole = GpuSearch(model)
    found = whole.find(sources, limits, width=3, penalty=penalty, abandoned=abandoned)
    expected = whole.find(sources, limits, width=3, penalty=penalty)
    given_up = [number for number, some in enumerate(found) if not some]
    assert given_up and all(number % 3 == 0 for number in given_up)
    same([some for some in found if some], [expected[number] for number, some in enumerate(found) if some])
    assert whole.find(sources, limits, width=3, penalty=penalty, abandoned=lambda _: True) == [[]] * 17
    same(whole.find(sources, limits, width=3, penalty=penalty), expected)


def test_several_threads_may_search_at_once() -> None:
    model = that_ends_at_times("modern")
    whole, every = GpuSearch(model), [some_sources(9, seed=seed) for seed in range(6)]
    penalty = paper_penalty(0.6)

    def find(sources: list[list[int]]) -> list[list[Hypothesis]]:
        return whole.find(sources, some_limits(sources), width=3, penalty=penalty)

    alone = [find(sources) for sources in every]
    with ThreadPoolExecutor(4) as threads:
        for found, expected in zip(threads.map(find, every * 3), alone * 3, strict=True):
            same(found, expected)


def test_no_sentences_find_nothing() -> None:
    assert GpuSearch(small_model("paper")).find([], some_limits([]), width=2, penalty=paper_penalty(0.6)) == []


@pytest.mark.parametrize("what", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_told(what: float) -> None:
    model, sources = small_model("paper"), some_sources(3)
    with torch.no_grad():
        model.inputs.weight_VD[FIRST_WORD] = what
    with pytest.raises(NotFiniteError):
        GpuSearch(model).find(sources, some_limits(sources), width=2, penalty=paper_penalty(0.6))


def test_the_model_it_was_given_stays_as_it_was() -> None:
    model, sources = small_model("pre-norm"), some_sources(3)
    before = copy.deepcopy(model.state_dict())
    GpuSearch(model, precision=torch.bfloat16).find(sources, some_limits(sources), width=2, penalty=paper_penalty(0.6))
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("width", [1, 3])
def test_a_step_can_be_taken_where_there_are_no_numbers_to_look_at(family: str, width: int) -> None:
    """So it can be captured as a graph; meta tensors have a shape, and nothing else that one could ask for."""
    decoder = Decoder(small_model(family).to("meta"), precision=torch.bfloat16, kernels=False)
    table = decoder.table(sentences=2, size=16, width=width, keep=1)
    with torch.inference_mode():
        search._Station(table, decoder, captured=False).step()
    with pytest.raises(RuntimeError):
        table.score_NB[0, 0].item()
