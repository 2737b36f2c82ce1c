"""Text of any length: sentence by sentence, and put together again as it was.

Line breaks, blank lines and the white space between sentences stay; inline tags are taken out, and put back around the
words that their words became.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from qkv.errors import RuleError
from qkv.text.placing import put_tags
from qkv.text.sentences import Ends, Pieces, split
from qkv.text.tags import BLOCKS, Tagged, take_html_tags, take_tags, write_html
from qkv.text.typography import is_typeset
from qkv.text.words import Span, words
from qkv.translate.options import Terms
from qkv.translate.translation import Translation

if TYPE_CHECKING:
    from qkv.translate.relay import Relay
    from qkv.translate.translator import Translator


_QUOTED = 40

Markup = Literal["none", "tags", "marks", "html"]
"""What a text has besides words: nothing, inline tags, those of HTML and its entities, or all that HTML has."""


@dataclass(frozen=True)
class Cuts:
    """Where a text is cut into sentences."""

    ends: Ends = "lines"
    tags: tuple[str, ...] = ()
    """Names of tags that end a sentence, besides those of the markup."""
    inline: tuple[str, ...] = ()
    """Names of tags that end none, whatever they are in the markup."""


USUAL_CUTS = Cuts()


class _Reading(NamedTuple):
    """How the tags of a text are taken out, which of them end a sentence, and how text is written between them."""

    take: Callable[..., Tagged]
    ending: frozenset[str]
    write: Callable[[str], str]


_MARKUP: dict[Markup, _Reading] = {
    "none": _Reading(lambda text, **_: Tagged(text, ()), frozenset(), str),
    "tags": _Reading(take_tags, frozenset(), str),
    "marks": _Reading(take_html_tags, frozenset(), write_html),
    # A line that ends in a text ends a sentence, too.
    "html": _Reading(take_html_tags, BLOCKS | {"br"}, write_html),
}


@dataclass(frozen=True)
class Document:
    """A text and its translation, and the sentences it was translated by, in order."""

    text: str
    sentences: tuple[str, ...]
    translations: tuple[Translation, ...]

    @property
    def cut_off(self) -> list[str]:
        """The sentences whose translations did not end before the length limit."""
        return [text for text, one in zip(self.sentences, self.translations, strict=True) if not one.complete]


@dataclass(frozen=True)
class Parted:
    """A text as sentences that a translator can take, and as what they are put together with again."""

    pieces: Pieces
    tagged: Tagged
    markup: Markup

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.pieces.sentences

    @property
    def aligned(self) -> bool:
        """Whether the translations have to tell which words they came from."""
        return bool(self.tagged.tags)

    def joined(self, translations: Sequence[Translation]) -> str:
        """The text with these translations in the places of its sentences."""
        texts = [one.text for one in translations]
        joined, write = self.pieces.join(texts), _MARKUP[self.markup].write
        sentences = [*zip(self.pieces.spans(self.sentences), self.pieces.spans(texts), strict=True)]
        links = _links(sentences, self.sentences, translations)
        # What stands between sentences, such as the mark of a list, is its own translation.
        between = [*_between(sentences, self.tagged.plain, joined)]
        for source, target in between:
            own = words(joined[slice(*target)])
            links += [(one.moved(source.start), one.moved(target.start)) for one in own]
        places = sorted([*sentences, *between])
        return put_tags(joined, self.tagged, sorted(links), sentences=places, write=write)


def part(
    translator: Translator | Relay,
    text: str,
    *,
    language: str | None = None,
    markup: Markup = "none",
    untouched: Collection[str] = (),
    cuts: Cuts = USUAL_CUTS,
) -> Parted:
    """Cuts a text of any length into sentences; its language, by default the model's source, says how they end.

    Elements of the markup whose names are in `untouched` stay as they are, with all that is in them.
    """
    reading = _MARKUP[markup]
    tagged = reading.take(text, whole=untouched, ending={*reading.ending, *cuts.tags} - {*cuts.inline})
    # The end of a source is a token too.
    limit = translator.longest_sentence - 1

    def cut(ends: Ends) -> Pieces:
        return split(tagged.plain, language or translator.source_language, ends=ends, breaks=tagged.breaks)

    pieces = cut(cuts.ends)
    if cuts.ends == "nowhere" and any(translator.measure(one) > limit for one in pieces.sentences):
        # The ends of its sentences are the best places to cut a text that is too long to be one.
        pieces = cut("lines")
    return Parted(pieces.in_words().within(limit, translator.measure), tagged, markup)


def translate_document(
    translator: Translator | Relay,
    text: str,
    *,
    language: str | None = None,
    tags: bool = False,
    terms: Callable[[str], Terms] | None = None,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> Document:
    """Translates a text of any length; `how` is what `Translator.translate` takes.

    With `tags`, inline tags are carried to where their words went. `terms` says what the translation of each sentence
    has to keep to.
    """
    markup: Markup = "tags" if tags else "none"
    (document,) = translate_documents(
        translator, [text], language=language, markup=markup, terms=terms, progress=progress, **how
    )
    return document


def translate_documents(
    translator: Translator | Relay,
    texts: Sequence[str],
    *,
    language: str | None = None,
    markup: Markup = "none",
    terms: Callable[[str], Terms] | None = None,
    apart: bool = False,
    progress: Callable[[int], None] | None = None,
    **how: Any,
) -> list[Document]:
    """The same of several texts, whose sentences are translated together.

    They are parts of one, which is typeset if any of them is; where they are `apart`, each is as it is.
    """
    parted = [part(translator, text, language=language, markup=markup) for text in texts]
    sentences = [sentence for one in parted for sentence in one.sentences]
    try:
        translations = iter(
            (translator.typeset if are_typeset(parted) and not apart else translator).translate(
                sentences,
                align=any(one.aligned for one in parted),
                terms=None if terms is None else [terms(sentence) for sentence in sentences],
                originals=[one.tagged.plain for one in parted for _ in one.sentences] if apart else None,
                progress=progress,
                **how,
            )
        )
    except RuleError as error:
        if apart:
            ends = [*itertools.accumulate(len(one.sentences) for one in parted)]
            raise RuleError(bisect.bisect_right(ends, error.sentence)) from error
        # Nobody but here has counted the sentences.
        begins = sentences[error.sentence][:_QUOTED]
        raise RuleError(error.sentence, f"the sentence that begins {begins!r}") from error
    documents = []
    for one in parted:
        own = tuple(itertools.islice(translations, len(one.sentences)))
        documents.append(Document(one.joined(own), one.sentences, own))
    return documents


def are_typeset(parted: Sequence[Parted]) -> bool:
    """Whether texts that belong together are typeset, which they all are if one is."""
    return any(is_typeset(one.tagged.plain) for one in parted)


def _between(places: Sequence[tuple[Span, Span]], source: str, target: str) -> Iterator[tuple[Span, Span]]:
    """What is to be seen between the sentences of a text, and where it is in its translation."""
    ends = [Span(0, 0), *(Span(one.end, other.end) for one, other in places)]
    starts = [*(Span(one.start, other.start) for one, other in places), Span(len(source), len(target))]
    for (source_end, target_end), (source_start, target_start) in zip(ends, starts, strict=True):
        gap = source[source_end:source_start]
        if seen := gap.strip():
            before = len(gap) - len(gap.lstrip())
            behind = target[target_end:target_start]
            assert behind.strip() == seen, "what has no words stays as it is"
            after = len(behind) - len(behind.lstrip())
            yield (
                Span(source_end + before, source_end + before + len(seen)),
                Span(target_end + after, target_end + after + len(seen)),
            )


def _links(
    places: Sequence[tuple[Span, Span]], sentences: Sequence[str], translations: Sequence[Translation]
) -> list[tuple[Span, Span]]:
    """Which parts of the whole source became which of the whole translation, where these stand in them."""
    links = []
    for (source_place, target_place), sentence, one in zip(places, sentences, translations, strict=True):
        if one.alignment is None:
            continue
        # What the model read was normalised: its words are those of the sentence, though not at the same places.
        own = words(sentence)
        if len(own) != len(one.alignment.source):
            continue
        for link in one.alignment.links:
            source, target = own[link.source], one.alignment.target[link.target]
            links.append((source.moved(source_place.start), target.moved(target_place.start)))
    return links
