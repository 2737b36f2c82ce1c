"""All that a beam wrote, as a tree: every token knows the one before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qkv.search.engine import Floats, Integers


class Moment(NamedTuple):
    """One step of a search: the tokens that were kept, best first."""

    sentences: Integers
    """The sentences that were still being looked at, in rising order."""
    score_NB: Floats
    """The log-probability of all up to here."""
    parent_NB: Integers
    """Which hypothesis of the moment before each continues."""
    token_NB: Integers
    gain_NB: Floats
    """The token's own log-probability."""
    looked: Floats | None
    """Where each hypothesis of the moment before looked when it was continued: of shape N, so many of them, K."""


class Path(NamedTuple):
    """A hypothesis from its first token on."""

    ids: list[int]
    gains: list[float]
    looked: list[Floats]


class Tree:
    """The moments of a search."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def path(self, sentence: int, length: int, place: int) -> Path:
        """What leads to the hypothesis that has this place after so many tokens."""
        path = Path([], [], [])
        for moment in reversed(self.moments[:length]):
            n = int(np.searchsorted(moment.sentences, sentence))
            parent = int(moment.parent_NB[n, place])
            path.ids.append(int(moment.token_NB[n, place]))
            path.gains.append(float(moment.gain_NB[n, place]))
            if moment.looked is not None:
                path.looked.append(moment.looked[n, parent])
            place = parent
        return Path(path.ids[::-1], path.gains[::-1], path.looked[::-1])

    def looked(self, sentence: int, length: int, place: int) -> list[Floats]:
        """Where the hypothesis of this place looked when a token more was chosen for it."""
        moment = self.moments[length]
        if moment.looked is None:
            return []
        return [moment.looked[int(np.searchsorted(moment.sentences, sentence)), place]]
