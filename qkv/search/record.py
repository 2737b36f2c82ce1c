"""What a beam looked at for one sentence, as a tree that tells of every branch why it went on or did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from qkv.search.engine import Floats, Integers
from qkv.search.hypothesis import Penalty

State = Literal["kept", "dropped", "finished", "chosen"]


@dataclass(frozen=True)
class Node:
    """A token behind all those before it; the root is number 0, has no token and is its own parent."""

    number: int
    parent: int
    step: int
    token: int | None
    log_probability: float
    """Of all up to here."""
    score: float
    """The same over the length penalty."""
    state: State
    why: str


class Considered(NamedTuple):
    """The best continuations of one step, best first, and the places of those that went on, best first."""

    score_C: Floats
    parent_C: Integers
    """Which of those that went on at the step before each continues."""
    token_C: Integers
    kept_B: Integers


class Record:
    """Told by a beam what it considers; a beam that has nobody to tell does no more than it would."""

    def __init__(self) -> None:
        self.width = 0
        self.steps: list[Considered] = []
        self._penalty: Penalty = float
        self._end = 0
        self._longest = 0

    def begin(self, *, width: int, penalty: Penalty, end: int, longest: int) -> None:
        """A search begins; what an earlier one did is forgotten."""
        self.width, self._penalty, self._end, self._longest = width, penalty, end, longest
        self.steps = []

    def nodes(self, written: Sequence[int]) -> list[Node]:
        """All that was considered, parents first; `written` is what was chosen, with its end if it has one."""
        nodes = [Node(0, 0, 0, None, 0.0, 0.0, "kept", "where every translation begins")]
        alive = [0]
        for step, considered in enumerate(self.steps, start=1):
            numbers: dict[int, int] = {}
            for place, score in enumerate(considered.score_C.tolist()):
                if score > -np.inf:
                    numbers[place] = len(nodes)
                    nodes.append(self._node(len(nodes), step, place, considered, alive))
            alive = [numbers.get(place, 0) for place in considered.kept_B.tolist()]
        return _without_issue(_settled(nodes, alive, self._chosen(nodes, written)), self.width)

    def _node(self, number: int, step: int, place: int, considered: Considered, alive: list[int]) -> Node:
        log_probability, token = float(considered.score_C[place]), int(considered.token_C[place])
        state, why = self._fate(step, place, considered)
        parent = alive[int(considered.parent_C[place])]
        return Node(number, parent, step, token, log_probability, log_probability / self._penalty(step), state, why)

    def _fate(self, step: int, place: int, considered: Considered) -> tuple[State, str]:
        width = self.width
        best = f"one of the best {width}" if width > 1 else "the likeliest"
        if considered.token_C[place] == self._end:
            if place < width:
                return "finished", f"it ended, as {best}"
            return "dropped", f"it ended, but was not {best}"
        if place not in considered.kept_B:
            others = f"{width} others were" if width > 1 else "another was"
            return "dropped", f"{others} likelier"
        if step == self._longest:
            return "finished", "cut off: it was as long as it may be"
        return "kept", best

    def _chosen(self, nodes: Sequence[Node], written: Sequence[int]) -> list[int]:
        """The numbers of the nodes that lead to what was written, the root first; none where the search has not it."""
        path = [0]
        children: dict[tuple[int, int | None], int] = {}
        for node in nodes[1:]:
            if node.state != "dropped":
                children[node.parent, node.token] = node.number
        for token in written:
            if (path[-1], token) not in children:
                return []
            path.append(children[path[-1], token])
        return path


def _settled(nodes: Sequence[Node], alive: Sequence[int], chosen: Sequence[int]) -> list[Node]:
    """The same with what came of them when the search had ended."""
    result = [*nodes]
    finished = sorted((node for node in nodes if node.state == "finished"), key=lambda node: -node.score)
    for number in alive:
        if result[number].state == "kept" and number:
            why = "the search ended: it could not have become better than what was finished"
            result[number] = replace(result[number], state="dropped", why=why)
    for rank, node in enumerate(finished):
        others = "one that finished" if rank == 1 else f"{rank} that finished"
        if rank:
            result[node.number] = replace(node, why=f"{node.why}; {others} scored better")
    for number in chosen:
        result[number] = replace(result[number], state="chosen", why="on the way to the translation")
    if chosen:
        why = f"the translation: the best of {len(finished)} that finished"
        result[chosen[-1]] = replace(result[chosen[-1]], why=why)
    return result


def _without_issue(nodes: Sequence[Node], width: int) -> list[Node]:
    """The same; those that were kept for nothing say so."""
    went_on = {node.parent for node in nodes if node.state != "dropped"}
    spent = f"one of the best {width}, but nothing that continued it stayed among them"
    return [
        replace(node, why=spent) if node.state == "kept" and node.number and node.number not in went_on else node
        for node in nodes
    ]
