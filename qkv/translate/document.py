"""Text of any length: sentence by sentence, and put together again as it was.

Line breaks, blank lines and the white space between sentences stay; inline tags are taken out, and put back around the
words that their words became.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qkv.text.placing import put_tags
from qkv.text.sentences import Pieces, split
from qkv.text.tags import Tagged, take_tags
from qkv.text.words import Span, words
from qkv.translate.options import Terms
from qkv.translate.translation import Translation

if TYPE_CHECKING:
    from qkv.translate.translator import Translator


@dataclass(frozen=True)
class Document:
    """A text and its translation, and the sentences it was translated by, in order."""

    text: str
    sentences: tuple[str, ...]
    translations: tuple[Translation, ...]


def translate_document(
    translator: Translator,
    text: str,
    *,
    language: str | None = None,
    tags: bool = False,
    terms: Callable[[str], Terms] | None = None,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> Document:
    """Translates a text of any length; `how` is what `Translator.translate` takes.

    The source's language, by default the one the model was trained on, says how sentences end. With `tags`, inline
    tags are carried to where their words went. `terms` says what the translation of each sentence has to keep to.
    """
    tagged = take_tags(text) if tags else Tagged(text, ())
    # The end of a source is a token too.
    limit = translator.longest_source - 1
    pieces = split(tagged.plain, language or translator.source_language).within(limit, translator.measure)
    translations = translator.translate(
        pieces.sentences,
        align=tags,
        terms=None if terms is None else [terms(sentence) for sentence in pieces.sentences],
        progress=progress,
        **how,
    )
    written = [one.text for one in translations]
    joined = pieces.join(written)
    if tags:
        joined = put_tags(joined, tagged, _links(pieces, translations))
    return Document(joined, pieces.sentences, tuple(translations))


def _links(pieces: Pieces, translations: Sequence[Translation]) -> list[tuple[Span, Span]]:
    """Which parts of the whole source became which of the whole translation."""
    links = []
    source_starts = pieces.starts(pieces.sentences)
    target_starts = pieces.starts([one.text for one in translations])
    for sentence, one, source_start, target_start in zip(
        pieces.sentences, translations, source_starts, target_starts, strict=True
    ):
        if one.alignment is None:
            continue
        # What the model read was normalised: its words are those of the sentence, though not at the same places.
        own = words(sentence)
        if len(own) != len(one.alignment.source):
            continue
        for link in one.alignment.links:
            source, target = own[link.source], one.alignment.target[link.target]
            links.append(
                (
                    Span(source_start + source.start, source_start + source.end),
                    Span(target_start + target.start, target_start + target.end),
                )
            )
    return links
