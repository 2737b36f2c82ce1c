"""From terms as text to the rule that holds a search to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property

from qkv.errors import ConfigError
from qkv.search.terms import Pieces, Term, Wishes, terms
from qkv.search.terms import Terms as Rule
from qkv.text.cleaning import normalise
from qkv.text.glossary import Glossary
from qkv.text.protect import find
from qkv.text.subwords import Tokenizer
from qkv.text.typography import spellings
from qkv.translate.keeping import Keeping, is_glued
from qkv.translate.options import Terms, capitalised

KEPT = {
    "placeholders": "placeholder",
    "tags": "tag",
    "entities": "entity",
    "urls": "url",
    "e-mails": "e-mail",
    "paths": "path",
    "code": "code",
    "numbers": "number",
}
"""What can be kept as it is, and what `text.protect` calls it."""

AMOUNTS = "amounts"
"""Numbers that may be written as the language does, or in words, and may not become others."""
COMMONLY_KEPT = ("placeholders", "urls", "e-mails", AMOUNTS)
"""What comes out of a translation as it went in, where nobody says otherwise."""

# What may stand right before a word: a term is written otherwise behind it than behind a space.
_OPENERS = "(\"'’«„“-/"
_TAKEN = "\ufffc"


def terms_of(text: str, *, glossary: Glossary | None = None, keep: Sequence[str] = ()) -> Terms:
    """What a glossary asks of the translation of a text, and what must come out of it unchanged, by names of `KEPT`."""
    if unknown := [name for name in keep if name not in (*KEPT, AMOUNTS)]:
        raise ConfigError(f"there is nothing to keep called {unknown[0]!r}; there is: {', '.join((*KEPT, AMOUNTS))}")
    text = normalise(text)
    kinds = tuple(KEPT[name] for name in keep if name != AMOUNTS)
    kept = find(text, kinds=kinds)
    glued = {one.text for one in kept if is_glued(text, one.span)}
    unchanged = Terms(
        once=tuple(one.text for one in kept),
        kinds=kinds,
        apart=tuple(dict.fromkeys(one.text for one in kept if one.text not in glued)),
        amounts=AMOUNTS in keep,
    )
    if glossary is None:
        return unchanged
    for (start, end), *_ in kept:
        # What is kept is translated by nobody: no term is looked for in it.
        text = text[:start] + _TAKEN * (end - start) + text[end:]
    demands = glossary.demands(text)
    return dataclasses.replace(unchanged, required=tuple(demands.required), forbidden=tuple(demands.forbidden))


class Encoder:
    """Makes rules of terms, for one vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def rule(self, asked: Terms, prefix: str = "") -> Rule:
        """The rule that a search is held to; what a forced beginning has inside is no fault."""
        wishes = Wishes(
            tuple(tuple(term for text in some for term in self._required(text)) for some in asked.required),
            tuple(map(self._term, asked.once)),
            tuple(spelled for text in asked.forbidden for spelled in spellings(normalise(text))),
            ignoring_case=True,
            reader=_keeping(asked, prefix) if asked.kinds else None,
        )
        return terms(wishes, self._pieces, self._separators, self._tokenizer.end)

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces([self._tokenizer.surface(token) for token in range(self._tokenizer.size)])

    @cached_property
    def _separators(self) -> list[int]:
        return self._pieces.separators()

    def _required(self, text: str) -> Iterator[Term]:
        yield self._term(text)
        if (begins := capitalised(text)) != text:
            yield self._term(begins, first=True)

    def _term(self, text: str, *, first: bool = False) -> Term:
        text = normalise(text)
        return Term(text, tuple(dict.fromkeys(self._ways(text))), first)

    def _ways(self, text: str) -> Iterator[tuple[int, ...]]:
        """How the text is cut behind a space, and behind signs."""
        encode = self._tokenizer.encode
        yield tuple(encode(text))
        for opener in _OPENERS:
            ids = encode(opener + text)
            for cut in range(1, len(ids)):
                if self._pieces.text(ids[cut:]) == text.encode():
                    yield tuple(ids[cut:])


def _keeping(asked: Terms, prefix: str) -> Keeping:
    # What somebody asks for comes with whatever it has inside.
    given = [prefix, *(text for some in asked.required for text in some)]
    spared = [one.text for text in given for one in find(normalise(text), kinds=asked.kinds)]
    return Keeping([*map(normalise, asked.once)], asked.kinds, apart=asked.apart, spared=spared)
