"""What is kept unchanged, looked for while a translation is being written, by the finder that found it in the source.

What the finder sees never reaches past a space, unless something kept has one inside. So a text is read run by run, and
of what was written only the last run, which is still open, has to be remembered.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from qkv.search.matching import Matcher, Pattern, Reading, in_word
from qkv.text.protect import SIGNS, find
from qkv.text.words import Span

_TAKEN = "\ufffc"
_OPENERS = {"code": "`", "tag": r"<[A-Za-z\d/!?]", "placeholder": r"\$\{|\{\S"}
"""By kind, what could make something of all that follows, beyond a space: it stands nowhere but in what is kept."""

_BEFORE = {"Ps", "Pi", "Pd", "Zs"}
_BEHIND = {"Pe", "Pf", "Pi", "Pd", "Po", "Zs"}
"""Kinds of signs that a sentence puts right before and behind something that is not part of it."""
_ALSO_BEFORE = "\"'’”/¿¡"
_NOT_BEHIND = "@#&*\\"


class Keeping:
    """Holds a text to what is kept: the finder sees nothing else in it, and nothing is glued to it or half of it there.

    How often each appears is for others to count.
    """

    def __init__(
        self, texts: Collection[str], kinds: Sequence[str], *, apart: Collection[str] = (), spared: Collection[str] = ()
    ) -> None:
        self._texts = sorted({*texts})
        self._spaced = [text for text in self._texts if " " in text]
        self._kinds = kinds
        self._apart = {*apart}
        """Such of the texts as stand by themselves."""
        self._allowed = {*texts, *spared}
        self._matcher = Matcher([Pattern(text) for text in self._texts])
        heads = [*map(_head, filter(_has_head, self._texts))]
        self._half = _any_of([*(_OPENERS[kind] for kind in kinds if kind in _OPENERS), *heads])
        self._telling = _any_of([*(SIGNS[kind] for kind in kinds), *heads, *map(re.escape, self._texts)])
        """What every run has that could be wrong; most runs are words that have nothing of the kind."""
        self._known_reads: dict[str, str | None] = {}
        self._known_wholes: dict[str, bool] = {}

    def read(self, text: str) -> str | None:
        """What is still open of a text, the open end of an older one before it; None where it can never be right."""
        if text not in self._known_reads:
            self._known_reads[text] = self._read(text)
        return self._known_reads[text]

    def is_whole(self, text: str) -> bool:
        """Whether an open text is right if nothing follows."""
        if text not in self._known_wholes:
            self._known_wholes[text] = self._is_whole(text)
        return self._known_wholes[text]

    def _read(self, text: str) -> str | None:
        *closed, rest = self._runs(text) if self._spaced else text.split(" ")
        if not all(map(self.is_whole, closed)):
            return None
        return rest if self.is_whole(rest) or any(map(self.is_whole, self._completed(rest))) else None

    def _runs(self, text: str) -> Iterator[str]:
        """The text cut at its spaces, but for those inside of what is kept, or of what may become that."""
        start = place = 0
        while place < len(text):
            inside = [one for one in self._spaced if text.startswith(one, place) or one.startswith(text[place:])]
            if inside:
                place += max(map(len, inside))
                continue
            if text[place] == " ":
                yield text[start:place]
                start = place + 1
            place += 1
        yield text[start:]

    def _completed(self, text: str) -> Iterator[str]:
        """The text with something finished that it ends with the beginning of."""
        for place in range(len(text)):
            for one in self._texts:
                if len(one) > len(text) - place and one.startswith(text[place:]):
                    yield text[:place] + one

    def _is_whole(self, text: str) -> bool:
        if not self._telling.search(text):
            return True
        found = find(text, kinds=self._kinds)
        if not all(one.text in self._allowed for one in found):
            return False
        # What stands there though the finder does not see it is glued to something.
        if Counter(self._standing(text)) != Counter(one.text for one in found if one.text in self._texts):
            return False
        outside, end = "", 0
        for span, _, kept in found:
            if kept in self._apart and is_glued(text, span):
                return False
            outside += text[end : span.start] + _TAKEN
            end = span.end
        return not self._half.search(outside + text[end:])

    def _standing(self, text: str) -> Iterator[str]:
        """The texts that stand in another as whole words."""
        if any(one in text for one in self._texts):
            read = self._matcher.read(Reading(), text)
            for number in (*read.found, *self._matcher.end(read.reading)):
                yield self._texts[number]


def is_glued(text: str, span: Span) -> bool:
    """Whether a part of a text touches a letter, a digit, or a sign that belongs to something else."""
    before, behind = text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    return not (
        (not before or unicodedata.category(before) in _BEFORE or before in _ALSO_BEFORE or _is_wide(before))
        and (not behind or (unicodedata.category(behind) in _BEHIND and behind not in _NOT_BEHIND) or _is_wide(behind))
    )


def _is_wide(character: str) -> bool:
    """Whether it belongs to a script that sets no spaces, such as Chinese."""
    return unicodedata.east_asian_width(character) in "WF"


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or "(?!)")


def _first(text: str) -> int:
    """How long the word is that a text begins with; a sign is one by itself."""
    return next((place for place, one in enumerate(text) if not in_word(one)), len(text)) or 1


def _has_head(text: str) -> bool:
    return _first(text) < len(text)


def _head(text: str) -> str:
    """Whoever wrote more than the first word or sign of it meant it: a pattern for that."""
    return (r"(?<!\w)" if in_word(text[0]) else "") + re.escape(text[: _first(text) + 1])
