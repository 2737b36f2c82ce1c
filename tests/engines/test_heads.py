"""Heads that align, on a language whose alignment is known: it is read backwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qkv.data.cooccurrence import Cooccurrence
from qkv.engines.heads import choose_heads
from qkv.engines.load import Loaded, load_run
from qkv.engines.looks import Looks
from qkv.engines.plain import PlainEngine
from qkv.search.forced import forced
from qkv.search.hypothesis import Limits
from qkv.text.alignment import align
from tests import toy


@pytest.fixture(scope="module")
def loaded(toy_run: Path) -> Loaded:
    return load_run(toy_run, "cpu")


@pytest.fixture(scope="module")
def chosen(loaded: Loaded) -> Looks:
    tokenizer = loaded.tokenizer
    known = [(tokenizer.encode(source), tokenizer.encode(target)) for source, target in toy.pairs(1000)]
    unseen = [(tokenizer.encode(source), tokenizer.encode(target)) for source, target in toy.held_out()[:40]]
    return choose_heads(loaded.model, tokenizer, unseen, Cooccurrence(tokenizer.size, known))


def share_right(loaded: Loaded, heads: list[tuple[int, int]], *, read: bool) -> float:
    """Of the words of unseen sentences that are linked to the word they are the reverse of."""
    tokenizer, some = loaded.tokenizer, toy.held_out()[40:]
    engine = PlainEngine(loaded.model, tokenizer.padding, looks=Looks(heads))
    sources, targets = ([tokenizer.encode(pair[side]) for pair in some] for side in (0, 1))
    limits = Limits(tokenizer.begin, tokenizer.end, [99] * len(some))
    state = engine.start([[*source, tokenizer.end] for source in sources], looks=True)
    right = []
    for (source, target), one, source_ids in zip(
        some, forced(engine, state, limits, targets, penalty=float), sources, strict=True
    ):
        assert one.looked_TK is not None
        looked = one.looked_TK[read:][: len(one.ids), : len(source_ids) + 1].tolist()
        found = align(source, tokenizer.spans(source_ids), target, tokenizer.spans(one.ids), looked)
        last = len(found.source) - 1
        links = {link.target: link.source for link in found.links}
        right += [links.get(word) == last - word for word in range(len(found.target))]
    return float(np.mean(right))


def test_the_heads_that_are_chosen_find_the_words(loaded: Loaded, chosen: Looks) -> None:
    assert share_right(loaded, chosen.heads, read=chosen.when_read) > 0.9


def test_they_are_as_good_as_all_heads_of_the_best_layer_and_better_than_those_of_the_worst(
    loaded: Loaded, chosen: Looks
) -> None:
    """They are chosen by a guessed dictionary, not by what is right here: a word of thirty may be worse for it."""
    layers, heads = loaded.config.model.decoder_layers, loaded.config.model.heads
    ours = share_right(loaded, chosen.heads, read=chosen.when_read)
    every = [[(layer, head) for head in range(heads)] for layer in range(layers)]
    theirs = [share_right(loaded, layer, read=chosen.when_read) for layer in every]
    assert max(theirs) - 0.05 < ours
    assert min(theirs) + 0.1 < ours


def test_no_head_is_chosen_twice(chosen: Looks) -> None:
    assert len({*chosen.heads}) == len(chosen.heads) > 0
    assert 0 < chosen.quality <= 1


def test_who_looks_at_a_tag_or_at_the_end_tells_nothing(loaded: Loaded) -> None:
    """They stand beside every frequent word, in all pairs."""
    tokenizer = loaded.tokenizer
    tag = next(token for token in range(tokenizer.size) if tokenizer.piece(token).startswith("<reserved"))
    pairs = [([tag], tokenizer.encode(target)) for _, target in toy.held_out()[:3]]
    assert choose_heads(loaded.model, tokenizer, pairs, Cooccurrence(tokenizer.size, pairs)).quality == 0
