"""Embeddings with positions in one pass, against the plain ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from qkv.layers import inputs as plain
from qkv.layers.dropout import Dropout
from qkv.layers.positions import LearnedPositions, Nowhere, Sinusoids
from tests.layers.gpu.dropping import PROBABILITY, check_dropout
from tests.layers.gpu.twins import Lying, agree, exact, in_both_precisions, in_rows_or_not, numbers, results

VOCABULARY, WIDTH = 11, 24
IDS = [[3, 10, 0, 3, 3], [1, 1, 2, 9, 0], [5, 6, 7, 8, 4]]
PLACES = [[0, 1, 2, 0, 1], [0, 1, 2, 3, 4], [0, 0, 0, 0, 1]]
POSITIONS: dict[str, Callable[[int], nn.Module]] = {
    "sinusoidal": Sinusoids,
    "learned": lambda width: LearnedPositions(width, longest=130),
    "nowhere": lambda _width: Nowhere(),
}


def as_in_training() -> tuple[list[list[int]], list[list[int]]]:
    """A row of 128 in which two sentences stand."""
    ids = torch.randint(1000, (1, 128), generator=torch.Generator().manual_seed(1))
    return ids.tolist(), [[*range(50), *range(78)]]


TEXTS = {"small": (IDS, PLACES, VOCABULARY, WIDTH), "as in training": (*as_in_training(), 1000, 512)}


@in_both_precisions
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("text", TEXTS)
def test_embeddings_are_the_plain_ones(device: torch.device, precision: torch.dtype, positions: str, text: str) -> None:
    from qkv.layers.gpu import inputs

    tokens, standing, vocabulary, width = TEXTS[text]
    ids, places = torch.tensor(tokens, device=device), torch.tensor(standing, device=device)
    weight = numbers(vocabulary, width, seed=1, device=device, precision=precision)
    part = POSITIONS[positions](width).to(device)
    torch.manual_seed(2)
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    part.to(precision)
    embedded = inputs.embed(ids, places, weight, part, Dropout(0.0))
    assert embedded.dtype == precision
    ours = results([embedded], [weight, *part.parameters()])
    (exact_weight,) = exact([weight])
    part.float()
    embedded = plain.embed(ids, places, exact_weight, part, Dropout(0.0))
    agree(ours, results([embedded], [exact_weight, *part.parameters()]))


def test_ids_and_positions_may_lie_anywhere_in_memory(device: torch.device) -> None:
    from qkv.layers.gpu import inputs

    ids, places = torch.tensor(IDS, device=device)[:, ::2], torch.arange(3, device=device).expand(3, -1)
    weight = numbers(VOCABULARY, WIDTH, seed=1, device=device)
    made = [
        results([one.embed(ids, places, weight, Sinusoids(WIDTH), Dropout(0.0))], [weight]) for one in (inputs, plain)
    ]
    agree(*made)


def test_a_search_reads_on_at_positions_past_the_width_of_what_it_reads(device: torch.device) -> None:
    from qkv.layers.gpu import inputs

    ids, places = torch.tensor([[3], [4]], device=device), torch.tensor([[9], [700]], device=device)
    weight = numbers(VOCABULARY, WIDTH, seed=1, device=device)
    with torch.no_grad():
        made = [[one.embed(ids, places, weight, Sinusoids(WIDTH), Dropout(0.0))] for one in (inputs, plain)]
    agree(*made)


def test_dropout_falls_on_the_sum(device: torch.device) -> None:
    from qkv.layers.gpu import inputs

    rows, width = (8, 20), 16
    ids = torch.arange(160, device=device).view(rows)

    def drop(ones: Tensor) -> Tensor:
        # Every token stands once in the text, so that the gradient of its weight is that of its place.
        weight = ones.view(160, width) * 0.25
        return inputs.embed(ids, torch.zeros_like(ids), weight, Nowhere(), Dropout(PROBABILITY))

    check_dropout(drop, (*rows, width), device)


@in_rows_or_not
def test_what_was_dropped_teaches_nothing(device: torch.device, lying: Lying) -> None:
    """Learned positions and tokens alike."""
    from qkv.layers.gpu import inputs

    ids, places = torch.tensor(IDS, device=device), torch.tensor(PLACES, device=device)
    weight = numbers(VOCABULARY, WIDTH, seed=1, device=device)
    part = LearnedPositions(WIDTH, longest=9).to(device)
    nn.init.normal_(part.weight_KD)
    embedded = inputs.embed(ids, places, weight, part, Dropout(PROBABILITY))
    kept = (embedded != 0).float() / (1 - PROBABILITY)
    ours = results([embedded], [weight, part.weight_KD], lying=lying)
    expected = plain.embed(ids, places, weight, part, Dropout(0.0)) * kept
    agree(ours, results([expected], [weight, part.weight_KD], lying=lying))


def test_nothing_is_dropped_when_the_model_does_not_learn(device: torch.device) -> None:
    from qkv.layers.gpu import inputs

    ids, places = torch.tensor(IDS, device=device), torch.tensor(PLACES, device=device)
    weight = numbers(VOCABULARY, WIDTH, seed=1, device=device)
    dropout = Dropout(PROBABILITY).eval()
    agree(
        [inputs.embed(ids, places, weight, Sinusoids(WIDTH), dropout)],
        [plain.embed(ids, places, weight, Sinusoids(WIDTH), dropout)],
    )
