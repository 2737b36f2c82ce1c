"""What a beam tells of itself, against what it finds and against the model."""

from __future__ import annotations

import pytest

from qkv.search.beam import beam_search
from qkv.search.hypothesis import Hypothesis, Limits, paper_penalty
from qkv.search.record import Node, Record
from qkv.search.rules import Prefix
from tests.search.made_up import BEGIN, END, MadeUp, Prefixes

LONGEST = 7
PENALTY = paper_penalty(0.6)


def searched(width: int, sentence: int, **more: object) -> tuple[MadeUp, list[Hypothesis], Record]:
    model, record = MadeUp(6, end_bonus=0.3), Record()
    limits = Limits(begin=BEGIN, end=END, longest=[LONGEST])
    options = {"width": width, "penalty": PENALTY, "keep": width, **more}
    (found,) = beam_search(model, Prefixes.of(sentence), limits, record=record, **options)  # type: ignore[arg-type]
    (without,) = beam_search(model, Prefixes.of(sentence), limits, **options)  # type: ignore[arg-type]
    assert found == without
    return model, found, record


def path(nodes: list[Node], node: Node) -> list[int]:
    tokens = []
    while node.token is not None:
        tokens.append(node.token)
        node = nodes[node.parent]
    return tokens[::-1]


def written(found: Hypothesis) -> list[int]:
    return [*found.ids, *[END] * found.complete]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("sentence", range(6))
def test_a_search_that_is_recorded_finds_the_same_and_its_record_tells_all_of_it(width: int, sentence: int) -> None:
    model, found, record = searched(width, sentence)
    nodes = record.nodes(written(found[0]))
    assert [node.number for node in nodes] == [*range(len(nodes))]
    for node in nodes[1:]:
        tokens = path(nodes, node)
        complete = tokens[-1] == END
        ids = tokens[:-1] if complete else tokens
        assert node.step == len(tokens)
        assert node.log_probability == pytest.approx(model.log_probability(sentence, ids, complete=complete), rel=1e-4)
        assert node.score == pytest.approx(node.log_probability / PENALTY(node.step))
        assert nodes[node.parent].state in ("kept", "chosen")
    parents = {node.parent for node in nodes if node.number}
    ends = [node for node in nodes if node.state in ("finished", "chosen") and node.number not in parents]
    best = sorted(ends, key=lambda node: -node.score)[:width]
    assert [path(nodes, node) for node in best] == [written(one) for one in found]


@pytest.mark.parametrize("sentence", range(6))
def test_what_was_chosen_is_one_path_whichever_translation_it_is(sentence: int) -> None:
    _, found, record = searched(3, sentence)
    for one in found:
        nodes = record.nodes(written(one))
        chosen = [node for node in nodes if node.state == "chosen"]
        assert [node.token for node in chosen] == [None, *written(one)]


def test_what_the_search_did_not_find_is_no_path() -> None:
    _, found, record = searched(2, 0)
    assert all(node.state != "chosen" for node in record.nodes([*written(found[0]), 3]))


def test_every_branch_says_why_it_went_no_further() -> None:
    _, found, record = searched(2, 1)
    nodes = record.nodes(written(found[0]))
    went_on = {node.parent for node in nodes if node.state != "dropped"}
    for node in nodes[1:]:
        if node.state == "dropped":
            assert "likelier" in node.why or "not one of the best 2" in node.why or "search ended" in node.why
        elif node.state == "kept":
            assert node.why.startswith("one of the best 2")
            assert ("nothing" in node.why) == (node.number not in went_on)
    kept = [sum(node.state in ("kept", "chosen") and node.step == step for node in nodes) for step in range(1, 4)]
    assert max(kept) <= 3


def test_a_search_that_is_held_to_a_beginning_tells_of_nothing_else() -> None:
    _, found, record = searched(2, 2, rules=[Prefix((4, 1))])
    nodes = record.nodes(written(found[0]))
    assert {tuple(path(nodes, node)[:2]) for node in nodes if node.step >= 2} == {(4, 1)}


def test_a_record_keeps_the_last_search_alone() -> None:
    record = Record()
    limits = Limits(begin=BEGIN, end=END, longest=[LONGEST])
    for sentence in (0, 1):
        beam_search(MadeUp(6), Prefixes.of(sentence), limits, width=2, penalty=PENALTY, record=record)
    alone = Record()
    beam_search(MadeUp(6), Prefixes.of(1), limits, width=2, penalty=PENALTY, record=alone)
    assert record.nodes([]) == alone.nodes([])
