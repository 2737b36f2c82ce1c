"""A source or a translation as it is shown: its text, its tokens, and the words that they are parts of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from qkv.text.alignment import Alignment, words_of
from qkv.text.subwords import Tokenizer
from qkv.text.words import Span, words

_APOSTROPHES = ("'", "’")
_CONTRACTIONS = ("t", "s", "re", "ve", "ll", "d", "m")
"""What stands behind an apostrophe and is no word of its own: didn't, it's. In l'animal there are two."""


class Token(NamedTuple):
    """A subword, and the number of its word; tags and the end belong to none."""

    text: str
    word: int | None


class Word(NamedTuple):
    """A word, and its tokens: the first, and the one behind the last."""

    text: str
    first: int
    behind: int


@dataclass(frozen=True)
class Side:
    text: str
    tokens: tuple[Token, ...]
    words: tuple[Word, ...]
    groups: tuple[int, ...]
    """For each of the text's words, as alignments count them, which of these words it is a part of."""


def side(tokenizer: Tokenizer, ids: Sequence[int], *, backwards: bool = False) -> Side:
    """How ids look, with their tags and their end; `backwards` are those whose last word was written first."""
    in_order = [*ids][::-1] if backwards else [*ids]
    text, spans = tokenizer.decode(in_order), tokenizer.spans(in_order)
    in_text = words(text)
    covered = words_of(spans, in_text)
    groups = _groups(text, in_text, covered)
    of_token = [groups[some[0]] if some else None for some in covered]
    for place in reversed(range(len(in_order) - 1)):
        # A space by itself, and the first bytes of a character, have nothing to show: they begin what follows.
        if of_token[place] is None and not tokenizer.is_control(in_order[place]):
            of_token[place] = of_token[place + 1]
    found = []
    for group in range(groups[-1] + 1 if groups else 0):
        own = [place for place, one in enumerate(of_token) if one == group]
        first, behind = (own[0], own[-1] + 1) if own else (len(of_token), len(of_token))
        of_token[first:behind] = [group] * (behind - first)
        parts = [span for span, one in zip(in_text, groups, strict=True) if one == group]
        found.append(Word(text[parts[0].start : parts[-1].end], first, behind))
    if backwards:
        of_token.reverse()
        found = [Word(word.text, len(ids) - word.behind, len(ids) - word.first) for word in found]
    tokens = tuple(Token(tokenizer.piece(token), word) for token, word in zip(ids, of_token, strict=True))
    return Side(text, tokens, tuple(found), tuple(groups))


def aligned_words(alignment: Alignment | None, source: Side, target: Side) -> list[list[int]]:
    """For each word of the target, the words of the source that it came from."""
    found: list[set[int]] = [set() for _ in target.words]
    for link in alignment.links if alignment is not None else ():
        found[target.groups[link.target]].add(source.groups[link.source])
    return [sorted(some) for some in found]


def _groups(text: str, in_text: Sequence[Span], covered: Sequence[Sequence[int]]) -> list[int]:
    """Words that share a token are one, and so are the parts of a contraction."""
    shared = {word for some in covered for word in some[1:]}
    begins = [int(word not in shared and not _contracted(text, in_text, word)) for word in range(len(in_text))]
    return [count - 1 for count in accumulate(begins)]


def _contracted(text: str, in_text: Sequence[Span], word: int) -> bool:
    """Whether a word is an apostrophe between letters, or the short end of a contraction behind one."""
    touching = [one for one in (word - 1, word, word + 1) if 0 <= one < len(in_text)]
    if word == 0 or in_text[word - 1].end != in_text[word].start:
        return False
    own = text[slice(*in_text[word])]
    if own in _APOSTROPHES:
        return (
            touching[-1] > word and in_text[word + 1].start == in_text[word].end and text[in_text[word].end].isalpha()
        )
    return own in _CONTRACTIONS and text[slice(*in_text[word - 1])] in _APOSTROPHES
