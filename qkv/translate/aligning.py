"""From where a model looked to which words came from which."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkv.search.hypothesis import Hypothesis
from qkv.text.alignment import Alignment, align
from qkv.text.subwords import Tokenizer


def aligned(tokenizer: Tokenizer, source: Sequence[int], one: Hypothesis, *, looks_when_read: bool) -> Alignment:
    """The words of a source, given as its ids with the end, and of a translation of it, linked."""
    assert one.looked_TK is not None
    words = source[:-1]
    looked_TK = one.looked_TK
    if looks_when_read:
        # The step after the last reads it only where there was one: the end.
        looked_TK = np.concatenate([looked_TK[1:], looked_TK[-1:]])
    rows = looked_TK[: len(one.ids), : len(source)].tolist()
    return align(
        tokenizer.decode(words), tokenizer.spans(words), tokenizer.decode(one.ids), tokenizer.spans(one.ids), rows
    )
