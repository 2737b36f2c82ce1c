"""Which language a text is in: py3langid, told which languages can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_ENOUGH = 2000
"""Characters: more of a text would not change what language it is in."""
_LEAST = 1e-4
"""A text whose languages here are less likely than this, all together, is in another: even short ones have 0.01."""


class Detected(NamedTuple):
    language: str
    confidence: float
    """From 0 to 1."""


class Detector:
    """Tells languages apart, of those that it is given."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = languages
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = {*self._identifier.nb_classes}
        self._known = {base: code for code in reversed(languages) if (base := code.partition("-")[0]) in known}

    def ranked(self, text: str) -> list[Detected]:
        """The languages that a text may be in, likeliest first; those that nobody can tell are last.

        It is one of them, as a rule, and their confidences sum to 1; where it is plainly in another, to almost nothing.
        """
        ranked = self._identifier.rank(text[:_ENOUGH]) if self._known else []
        shares = {str(code): float(share) for code, share in ranked if code in self._known}
        whole = sum(shares.values())
        whole = whole if whole >= _LEAST else 1
        found = [Detected(self._known[code], share / whole) for code, share in shares.items()]
        # Where nothing tells them apart, the language that the server has first is as good a guess as any.
        found.sort(key=lambda one: (-round(one.confidence, 3), self._languages.index(one.language)))
        return found + [Detected(code, 0.0) for code in self._languages if code not in {one.language for one in found}]
