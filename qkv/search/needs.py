"""What of all that was asked for is still missing, where one text may stand for several wishes."""

from __future__ import annotations

from collections.abc import Sequence

_Counts = tuple[int, ...]


class Needs:
    """Each need is met by one of its texts; `costs` says what each text takes to write, `caps` how often it may appear.

    What was found is dealt out so that the least is left to be written.
    """

    def __init__(self, needs: Sequence[frozenset[int]], costs: Sequence[int], caps: Sequence[int | None]) -> None:
        # The dearest are dealt with first: no other order leaves less.
        self._needs = sorted(needs, key=lambda need: -min(costs[text] for text in need))
        self._cost_of = [min(costs[text] for text in need) for need in self._needs]
        self._caps = caps
        self._asked = [sum(text in need for need in needs) for text in range(len(costs))]
        self._costs: dict[_Counts, int] = {}
        self._useful: dict[_Counts, list[int]] = {}

    @property
    def are_possible(self) -> bool:
        """Whether all can be met though some texts may appear only so often."""
        most = (len(self._needs) if cap is None else cap for cap in self._caps)
        return not self.cost(tuple(most))

    def cost(self, counts: _Counts) -> int:
        """How much must still be written when each text was found so often."""
        if counts not in self._costs:
            holders: list[list[int]] = [[] for _ in counts]
            self._costs[counts] = sum(
                cost for need, cost in enumerate(self._cost_of) if not self._hold(need, holders, counts, set())
            )
        return self._costs[counts]

    def useful(self, counts: _Counts) -> list[int]:
        """The texts of which one more would help."""
        if counts not in self._useful:
            self._useful[counts] = [
                text
                for text in range(len(counts))
                if self.cost((*counts[:text], counts[text] + 1, *counts[text + 1 :])) < self.cost(counts)
            ]
        return self._useful[counts]

    def counted(self, counts: _Counts, found: Sequence[int]) -> tuple[_Counts, bool]:
        """The counts with what was found, up to what matters, and whether that is no more than may be."""
        if not found:
            return counts, True
        changed, is_sound = [*counts], True
        for text in found:
            cap = self._caps[text]
            if cap is not None and changed[text] == cap:
                is_sound = False
            elif changed[text] < self._asked[text]:
                changed[text] += 1
        return tuple(changed), is_sound

    def _hold(self, need: int, holders: list[list[int]], counts: _Counts, tried: set[int]) -> bool:
        """Gives a need one of its texts, if others that hold one can be given another."""
        for text in self._needs[need] - tried:
            tried.add(text)
            if len(holders[text]) < counts[text]:
                holders[text].append(need)
                return True
            for place, other in enumerate(holders[text]):
                if self._hold(other, holders, counts, tried):
                    holders[text][place] = need
                    return True
        return False
