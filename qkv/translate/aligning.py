"""From where a model looked to which words came from which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkv.search.engine import Floats
from qkv.search.hypothesis import Hypothesis
from qkv.text.alignment import Alignment, align
from qkv.text.subwords import Tokenizer
from qkv.text.words import Span


def looked_for_each(found: Hypothesis, *, looks_when_read: bool) -> Floats:
    """A row for each token, the end left out: where the model looked when it wrote it, or when it read it."""
    assert found.looked_TK is not None
    looked_TK = found.looked_TK
    if looks_when_read:
        # The step after the last reads it only where there was one: the end.
        looked_TK = np.concatenate([looked_TK[1:], looked_TK[-1:]])
    return looked_TK[: len(found.ids)]


def aligned(
    tokenizer: Tokenizer, source: Sequence[int], target: str, target_tokens: Sequence[Span], looked_TK: Floats
) -> Alignment:
    """The words of a source, given as its ids with the end, and of a translation of it, linked."""
    words = source[:-1]
    return align(
        tokenizer.decode(words),
        tokenizer.spans(words),
        target,
        target_tokens,
        looked_TK[:, : len(source)].tolist(),
    )
