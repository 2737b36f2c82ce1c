"""How a translation that somebody has begun may go on."""

from __future__ import annotations

import dataclasses

from qkv.search.rules import Prefix
from qkv.text.words import first_word
from qkv.translate.asked import Asked
from qkv.translate.looking import Sought
from qkv.translate.options import Controls
from qkv.translate.searcher import Searcher
from qkv.translate.translation import Translation


def continuations(searcher: Searcher, first: Asked, prefix: str, *, count: int, align: bool) -> list[Translation]:
    """Translations of what is asked, which begins with this prefix, that go on with different words."""
    wording = searcher.wording
    begun = first.rule.tokens if isinstance(first.rule, Prefix) else ()
    following = searcher.following(first, begun, count=2 * count, new_word=wording.ends_a_word(prefix))
    asked = [
        dataclasses.replace(first, number=number, rule=Prefix((*begun, token)))
        for number, token in enumerate(following)
    ]
    found = [
        searcher.told(one, best, aligned=align, sought=Sought(Controls(), 1))
        for one, some in zip(asked, searcher.look(asked, Controls(), keep=1, looks=align), strict=True)
        for best in some
    ]
    # A word may be cut in several ways: the first of them is the likeliest.
    given = len(wording.written(begun, first.style))
    by_word = {first_word(one.text[given:]): one for one in reversed(found)}
    return [one for one in found if one in by_word.values()][:count]
