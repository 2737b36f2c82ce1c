"""The tree that a beam's past is kept as."""

from __future__ import annotations

import numpy as np

from qkv.engines.cache import Cache
from qkv.engines.memory import Pool

LAYERS, SENTENCES, HEADS, KEY, VALUE = 2, 3, 4, 5, 6


def written(cache: Cache, tokens: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Cache:
    """As a step does: what each hypothesis writes goes into its slot."""
    cache, slots = cache.taking()
    for part in (*cache.key_NHSE, *cache.value_NHSU):
        for (sentence, hypothesis), slot in np.ndenumerate(slots):
            part[sentence, :, slot] = tokens[sentence, hypothesis]
    return cache


def seen(cache: Cache) -> list[list[list[float]]]:
    """What each hypothesis of each sentence sees."""
    return [
        [sorted(cache.key_NHSE[1][n, 2, mask_S == 0, 3].tolist()) for mask_S in mask_BS]
        for n, mask_BS in enumerate(cache.mask_NBS)
    ]


def test_every_hypothesis_sees_its_own_branch_however_often_slots_are_moved() -> None:
    random = np.random.default_rng(1)
    cache = Cache.empty(Pool(), LAYERS, SENTENCES, HEADS, KEY, VALUE)
    branches: list[list[list[float]]] = [[[]] for _ in range(SENTENCES)]
    token = 0.0
    for step in range(40):
        beam = len(branches[0])
        tokens = token + np.arange(len(branches) * beam, dtype=float).reshape(len(branches), beam)
        token = float(tokens.max()) + 1
        cache = written(cache, tokens)
        branches = [
            [[*b, t] for b, t in zip(*pair, strict=True)] for pair in zip(branches, tokens.tolist(), strict=True)
        ]
        assert seen(cache) == branches
        assert np.isfinite(cache.key_NHSE).all()
        left = [0, 2] if step == 20 else list(range(len(branches)))
        parents = random.integers(0, beam, (len(left), 3))
        rows = (np.array(left)[:, None] * beam + parents).ravel()
        cache = cache.select(rows, np.array(left) if step == 20 else None)
        branches = [[branches[n][parent] for parent in some] for n, some in zip(left, parents.tolist(), strict=True)]
    # Three branches have much in common: what nobody sees any more was written over.
    assert cache.slots < 80
