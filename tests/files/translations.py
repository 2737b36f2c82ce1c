"""Translators that need no model: nothing changes, everything is loud, words change places."""

from __future__ import annotations

import random
import re

from qkv.files import Translate
from qkv.text.placing import by_words, put_tags
from qkv.text.tags import take_html_tags, write_html

_OPAQUE = re.compile(r"(<[^>]*>|&#?\w+;)")


def same(texts: list[str]) -> list[str]:
    return texts


def loud(texts: list[str]) -> list[str]:
    """In capitals, tags and entities as they are."""
    return [
        "".join(part if place % 2 else part.upper() for place, part in enumerate(_OPAQUE.split(text))) for text in texts
    ]


def shuffled(seed: int) -> Translate:
    """Words in another order, and tags where the words went, as a model would have it."""
    drawn = random.Random(seed)

    def translate(texts: list[str]) -> list[str]:
        result = []
        for text in texts:
            tagged = take_html_tags(text)
            words = tagged.plain.split()
            order = drawn.sample(range(len(words)), len(words))
            translation = " ".join(words[place].swapcase() for place in order)
            pairs = [(source, target) for target, source in enumerate(order)]
            alignment = by_words(tagged.plain, translation, pairs)
            result.append(put_tags(translation, tagged, alignment, write=write_html))
        return result

    return translate
